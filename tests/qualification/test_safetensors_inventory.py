"""A sound file is read in full; each kind of hand-made bad file is named by its fault."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save_file

from qualification.safetensors_inventory import MAX_HEADER_BYTES, take_inventory
from tests.qualification.safetensors_files import entry, write, write_raw, write_sound

ONE = b'{"dtype":"F32","shape":[2],"data_offsets":[0,8]}'


def _codes(path: Path) -> list[str]:
    return [fault.code for fault in take_inventory(path).faults]


def test_reads_what_the_library_wrote(tmp_path: Path) -> None:
    tensors = {
        "a": np.zeros((2, 3), np.float32),
        "b": np.zeros((4,), np.int8),
        "scalar": np.zeros((), np.float16),
        "empty": np.zeros((0, 7), np.int64),
    }
    save_file(tensors, tmp_path / "x.safetensors", metadata={"format": "np"})
    inventory = take_inventory(tmp_path / "x.safetensors")
    assert inventory.faults == ()
    assert {tensor.name: tensor.shape for tensor in inventory.tensors} == {n: t.shape for n, t in tensors.items()}
    assert inventory.parameters == 11
    assert inventory.dtypes == {"F16": 1, "F32": 1, "I64": 1, "I8": 1}
    assert inventory.metadata == {"format": "np"}
    assert inventory.header_bytes + 8 + 24 + 4 + 2 == inventory.file_bytes


def test_listing_ignores_values_and_order_but_not_shapes(tmp_path: Path) -> None:
    one = take_inventory(write_sound(tmp_path / "1", fill=1))
    two = take_inventory(
        write(tmp_path / "2", {"b.weight": entry(0, 8, "BF16", (2, 2)), "a.weight": entry(8, 16)}, bytes(16))
    )
    other = take_inventory(
        write(tmp_path / "3", {"b.weight": entry(0, 8, "BF16", (4, 1)), "a.weight": entry(8, 16)}, bytes(16))
    )
    assert one.listing_sha256 == two.listing_sha256 != other.listing_sha256


def test_groups_by_prefix(tmp_path: Path) -> None:
    inventory = take_inventory(write_sound(tmp_path / "x"))
    assert [tensor.name for tensor in inventory.under("a.")] == ["a.weight"]


@pytest.mark.parametrize(
    ("entries", "data", "code"),
    [
        ({"a": entry(0, 8), "b": entry(4, 12)}, 12, "overlap"),
        ({"a": entry(0, 8), "b": entry(0, 8)}, 8, "overlap"),
        ({"a": entry(0, 8), "b": entry(12, 16)}, 16, "gap"),
        ({"a": entry(4, 8)}, 8, "gap"),
        ({"a": entry(0, 8)}, 9, "trailing_bytes"),
        ({"a": entry(0, 8)}, 7, "truncated"),
        ({"a": entry(0, 8, shape=(3,))}, 8, "size"),
        ({"a": entry(8, 0, shape=(2,))}, 8, "size"),
        ({"a": entry(0, 8, dtype="F33")}, 8, "dtype"),
        ({"a": entry(0, 8, shape=(-1, -2))}, 8, "shape"),
        ({"a": {"dtype": "F32", "shape": [True, 2], "data_offsets": [0, 8]}}, 8, "shape"),
        ({"a": {"dtype": "F32", "shape": [2.0], "data_offsets": [0, 8]}}, 8, "shape"),
        ({"a": {"dtype": "F32", "shape": [1] * 17, "data_offsets": [0, 4]}}, 4, "shape"),
        ({"a": {"dtype": "F32", "shape": [2**63], "data_offsets": [0, 8]}}, 8, "shape"),
        ({"a": {"dtype": "F32", "shape": [2], "data_offsets": [-8, 0]}}, 8, "offsets"),
        ({"a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 4, 8]}}, 8, "offsets"),
        ({"a": {"dtype": "F32", "shape": [2]}}, 8, "entry"),
        ({"a": {**entry(0, 8), "hidden": 1}}, 8, "entry"),
        ({"a": []}, 8, "entry"),
        ({"__metadata__": {"format": 1}, "a": entry(0, 8)}, 8, "metadata"),
        ({"__metadata__": {"format": "pt"}}, 0, "no_tensors"),
    ],
)
def test_bad_header_entries(tmp_path: Path, entries: dict[str, Any], data: int, code: str) -> None:
    assert code in _codes(write(tmp_path / "bad.safetensors", entries, bytes(data)))


@pytest.mark.parametrize(
    ("header", "code"),
    [
        (b'{"a":' + ONE + b',"a":' + ONE + b"}", "duplicate_key"),
        (b'{"a":{"dtype":"F32","dtype":"I32","shape":[2],"data_offsets":[0,8]}}', "duplicate_key"),
        (b' {"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}', "header_start"),
        (b'{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}\n', "header_padding"),
        (b'{"a":{"dtype":"F32","shape":[NaN],"data_offsets":[0,8]}}', "header_json"),
        (b'{"a":\xff}', "header_json"),
        (b'{"a":', "header_json"),
        (b"[]", "header_start"),
        (b'{"a":' + b"[" * 5_000 + b"]" * 5_000 + b"}", "entry"),
    ],
)  # fmt: skip
def test_bad_header_texts(tmp_path: Path, header: bytes, code: str) -> None:
    codes = _codes(write_raw(tmp_path / "bad.safetensors", header, bytes(8)))
    assert code in codes or (code == "entry" and "header_json" in codes)  # deep nesting: refused either way


def test_spaces_pad_a_header(tmp_path: Path) -> None:
    header = json.dumps({"a": entry(0, 8)}).encode() + b"   "
    assert _codes(write_raw(tmp_path / "ok.safetensors", header, bytes(8))) == []


@pytest.mark.parametrize(
    ("length", "code"),
    [
        (0, "header_length"),
        (1, "header_length"),
        (MAX_HEADER_BYTES + 1, "header_length"),
        (2**64 - 1, "header_length"),
        (500, "header_truncated"),
    ],
)
def test_bad_header_lengths(tmp_path: Path, length: int, code: str) -> None:
    path = write_raw(tmp_path / "bad.safetensors", json.dumps({"a": entry(0, 8)}).encode(), bytes(8), length=length)
    assert _codes(path) == [code]


@pytest.mark.parametrize("content", [b"", b"1234567"])
def test_no_room_for_a_header(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "bad.safetensors"
    path.write_bytes(content)
    assert _codes(path) == ["too_short"]


def test_every_truncation_of_a_sound_file_is_a_fault(tmp_path: Path) -> None:
    whole = write_sound(tmp_path / "x").read_bytes()
    for size in range(len(whole)):
        (tmp_path / "cut").write_bytes(whole[:size])
        assert take_inventory(tmp_path / "cut").faults, size
