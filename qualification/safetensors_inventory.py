"""What a safetensors file really holds, read from its header alone and without torch.

A weight file is hashed to know which file it is; it is inventoried to know that it is sane: every tensor inside the
file, none overlapping, no byte unaccounted for, no name twice. A reader that trusts the header (most do) can be led to
alias tensors or to hide data behind the last one. Faults are collected, not raised, so that a report can list them all.

Source of the rules: the format description of the safetensors project. Not covered: the values of the tensors.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

LENGTH_BYTES = 8  # the header's length, unsigned little-endian, opens the file
MAX_HEADER_BYTES = 100_000_000  # the format's own ceiling
MAX_RANK = 16
METADATA = "__metadata__"
DTYPE_BYTES = {
    "BOOL": 1, "U8": 1, "I8": 1, "F8_E4M3": 1, "F8_E5M2": 1, "U16": 2, "I16": 2, "F16": 2, "BF16": 2,
    "U32": 4, "I32": 4, "F32": 4, "U64": 8, "I64": 8, "F64": 8, "C64": 8,
}  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Fault:
    """One thing wrong with a weight file: a stable code and a sentence that names the tensor or the bytes."""

    code: str
    detail: str


@dataclass(frozen=True, kw_only=True)
class Tensor:
    """One entry of the header. `begin` and `end` are byte offsets after the header."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    begin: int
    end: int

    @property
    def parameters(self) -> int:
        count = 1
        for size in self.shape:
            count *= size
        return count


@dataclass(frozen=True, kw_only=True)
class Inventory:
    """Everything that the header says, and what is wrong with it. Sound only if `faults` is empty.

    `header_bytes` is the JSON header's length without the 8 length bytes, as the format counts it.
    """

    file_bytes: int
    header_bytes: int
    tensors: tuple[Tensor, ...]
    metadata: dict[str, str]
    faults: tuple[Fault, ...]

    @property
    def parameters(self) -> int:
        return sum(tensor.parameters for tensor in self.tensors)

    @property
    def dtypes(self) -> dict[str, int]:
        """Tensors by dtype."""
        return dict(sorted(Counter(tensor.dtype for tensor in self.tensors).items()))

    @property
    def listing_sha256(self) -> str:
        """SHA-256 over one JSON line `[name, dtype, shape]` a tensor, sorted by name: equal for equal architectures."""
        lines = (json.dumps([t.name, t.dtype, t.shape]) + "\n" for t in sorted(self.tensors, key=_by_name))
        return hashlib.sha256("".join(lines).encode()).hexdigest()

    def under(self, prefix: str) -> tuple[Tensor, ...]:
        """The tensors whose names begin with `prefix`."""
        return tuple(tensor for tensor in self.tensors if tensor.name.startswith(prefix))


def take_inventory(path: Path) -> Inventory:
    """Read the header of `path` and check it against the file's size; never reads tensor data.

    Raises:
        OSError: the file cannot be read at all.
    """
    with path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        prefix = file.read(LENGTH_BYTES)
        length = int.from_bytes(prefix, "little")
        fault = _length_fault(size, prefix, length)
        header = b"" if fault else file.read(length)
    if fault:
        return Inventory(file_bytes=size, header_bytes=length, tensors=(), metadata={}, faults=(fault,))
    return _inventory_of(size, header)


def _inventory_of(size: int, header: bytes) -> Inventory:
    faults: list[Fault] = []
    entries = _parse(header, faults)
    metadata = _metadata(entries.pop(METADATA, {}), faults)
    tensors = tuple(tensor for name, entry in entries.items() if (tensor := _tensor(name, entry, faults)))
    if not tensors and not faults:
        faults.append(Fault(code="no_tensors", detail="the header names no tensor"))
    if not faults:
        faults.extend(_layout_faults(tensors, size - LENGTH_BYTES - len(header)))
    return Inventory(
        file_bytes=size, header_bytes=len(header), tensors=tensors, metadata=metadata, faults=tuple(faults)
    )


def _length_fault(size: int, prefix: bytes, length: int) -> Fault | None:
    if len(prefix) < LENGTH_BYTES:
        return Fault(code="too_short", detail=f"{size} bytes cannot hold the 8 bytes of the header's length")
    if length < 2 or length > MAX_HEADER_BYTES:
        return Fault(code="header_length", detail=f"a header of {length} bytes is not sane (2 to {MAX_HEADER_BYTES})")
    if LENGTH_BYTES + length > size:
        return Fault(code="header_truncated", detail=f"the header says {length} bytes, the file has {size}")
    return None


def _parse(header: bytes, faults: list[Fault]) -> dict[str, Any]:
    """The header as a dict; empty, with a fault, where it is no strict JSON object."""

    def pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
        for name, times in Counter(name for name, _ in items).items():
            if times > 1:
                faults.append(Fault(code="duplicate_key", detail=f"the header has {name!r} {times} times"))
        return dict(items)

    if not header.startswith(b"{"):
        faults.append(Fault(code="header_start", detail="the header does not begin with '{'"))
        return {}
    try:
        value = json.loads(header.decode("utf-8"), object_pairs_hook=pairs, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        faults.append(Fault(code="header_json", detail=f"the header is not valid JSON: {error}"))
        return {}
    if header.rstrip(b" ")[-1:] != b"}":
        faults.append(Fault(code="header_padding", detail="the header is padded with something other than spaces"))
    return dict(value)


def _refuse_constant(name: str) -> float:
    raise ValueError(f"{name} is not JSON")


def _metadata(value: Any, faults: list[Fault]) -> dict[str, str]:
    if isinstance(value, dict) and all(isinstance(item, str) for item in value.values()):
        return dict(value)
    faults.append(Fault(code="metadata", detail="__metadata__ must map text to text"))
    return {}


def _tensor(name: str, entry: Any, faults: list[Fault]) -> Tensor | None:
    problem = _entry_problem(entry)
    if problem:
        faults.append(Fault(code=problem[0], detail=f"tensor {name!r}: {problem[1]}"))
        return None
    begin, end = entry["data_offsets"]
    return Tensor(name=name, dtype=entry["dtype"], shape=tuple(entry["shape"]), begin=begin, end=end)


def _entry_problem(entry: Any) -> tuple[str, str] | None:
    """The first thing wrong with one header entry as (code, words); None when it is sound by itself."""
    if not isinstance(entry, dict) or set(entry) != {"dtype", "shape", "data_offsets"}:
        return "entry", "needs exactly dtype, shape and data_offsets"
    if not isinstance(entry["dtype"], str) or entry["dtype"] not in DTYPE_BYTES:
        return "dtype", f"dtype {entry['dtype']!r} is not known"
    if not _naturals(entry["shape"]) or len(entry["shape"]) > MAX_RANK:
        return "shape", f"shape {entry['shape']!r} is not a list of at most {MAX_RANK} natural numbers"
    if not _naturals(entry["data_offsets"]) or len(entry["data_offsets"]) != 2:
        return "offsets", f"data_offsets {entry['data_offsets']!r} is not a pair of natural numbers"
    begin, end = entry["data_offsets"]
    needed = DTYPE_BYTES[entry["dtype"]]
    for size in entry["shape"]:
        needed *= size
    if end - begin != needed:
        return "size", f"{entry['dtype']} {entry['shape']} takes {needed} bytes, the offsets span {end - begin}"
    return None


def _naturals(value: Any) -> bool:
    return isinstance(value, list) and all(type(item) is int and 0 <= item < 2**63 for item in value)


def _layout_faults(tensors: tuple[Tensor, ...], data_bytes: int) -> list[Fault]:
    """Faults of the data section: sorted by offset, each tensor must begin where the one before ended."""
    faults = []
    position = 0
    for tensor in sorted(tensors, key=lambda item: (item.begin, item.end)):
        if tensor.begin < position:
            faults.append(Fault(code="overlap", detail=f"tensor {tensor.name!r} begins before byte {position}"))
        if tensor.begin > position:
            faults.append(Fault(code="gap", detail=f"bytes {position} to {tensor.begin} belong to no tensor"))
        position = max(position, tensor.end)
    if position > data_bytes:
        faults.append(
            Fault(code="truncated", detail=f"tensors need {position} bytes of data, the file has {data_bytes}")
        )
    if position < data_bytes:
        faults.append(Fault(code="trailing_bytes", detail=f"{data_bytes - position} bytes follow the last tensor"))
    return faults


def _by_name(tensor: Tensor) -> str:
    return tensor.name
