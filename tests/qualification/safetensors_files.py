"""Hand-made safetensors files for the tests: the header is written byte by byte, so that it can lie."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def entry(begin: int, end: int, dtype: str = "F32", shape: tuple[int, ...] | None = None) -> dict[str, Any]:
    """A header entry; without a shape, a vector of as many 4-byte elements as the offsets span."""
    return {
        "dtype": dtype,
        "shape": [(end - begin) // 4] if shape is None else list(shape),
        "data_offsets": [begin, end],
    }


def write_raw(path: Path, header: bytes, data: bytes, length: int | None = None) -> Path:
    """Write header and data as given; `length` lies about the header."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes((len(header) if length is None else length).to_bytes(8, "little") + header + data)
    return path


def write(path: Path, entries: dict[str, Any], data: bytes) -> Path:
    """Write a file with these header entries."""
    return write_raw(path, json.dumps(entries).encode(), data)


def write_sound(path: Path, fill: int = 0) -> Path:
    """Two tensors in 16 bytes, the data filled with one byte value."""
    entries = {"__metadata__": {"format": "pt"}, "a.weight": entry(0, 8), "b.weight": entry(8, 16, "BF16", (2, 2))}
    return write(path, entries, bytes([fill]) * 16)
