"""The tolerant reader: each fault of a file is named, and an exact file has none."""

from __future__ import annotations

import struct

import numpy as np
import pytest

from qualification.audio_review.wave import read_wave
from qualification.clip import encode_wav

PCM = np.arange(-960, 960, dtype="<i2").tobytes()
GOOD = encode_wav(PCM)


def riff(coding: int, channels: int, rate: int, bits: int, data: bytes) -> bytes:
    width = channels * bits // 8
    header = struct.pack(
        "<4sIHHIIHH4sI", b"fmt ", 16, coding, channels, rate, rate * width, width, bits, b"data", len(data)
    )
    return b"RIFF" + struct.pack("<I", 4 + len(header) + len(data)) + b"WAVE" + header + data


def test_an_exact_file_has_no_fault() -> None:
    wave = read_wave(GOOD)
    assert (wave.faults, wave.non_finite) == ((), 0)
    assert wave.pcm is not None
    assert wave.pcm.tobytes() == PCM


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (GOOD[: len(GOOD) // 2], "data size says 3840 bytes, 1898 are there"),
        (GOOD[:-1], "no whole number of samples"),
        (GOOD[:40] + b"\xff\xff\xff\xff" + GOOD[44:], "data size says 4294967295"),
        (GOOD[:4] + b"\xff\xff\xff\xff" + GOOD[8:], "RIFF size says 4294967295"),
        (GOOD + b"LIST\x04\x00\x00\x00abcd", "56 bytes beside the samples"),
        (GOOD + GOOD, "RIFF size"),
        (riff(1, 2, 24_000, 16, PCM), "channels 2"),
        (riff(1, 1, 48_000, 16, PCM), "rate 48000"),
        (riff(3, 1, 24_000, 32, np.zeros(8, "<f4").tobytes()), "coding 3"),
        (riff(1, 1, 24_000, 8, PCM), "bits 8"),
        (riff(1, 1, 24_000, 16, b""), "0 bytes of data"),
        (b"OggS" + bytes(60), "no RIFF/WAVE"),
        (b"", "no RIFF/WAVE"),
    ],
)
def test_each_fault_is_named(content: bytes, words: str) -> None:
    assert any(words in fault for fault in read_wave(content).faults)


def test_samples_that_are_no_numbers_are_counted() -> None:
    samples = np.zeros(100, dtype="<f4")
    samples[3], samples[50] = np.nan, np.inf
    wave = read_wave(riff(3, 1, 24_000, 32, samples.tobytes()))
    assert wave.non_finite == 2
    assert wave.pcm is None


def test_what_is_there_of_a_truncated_file_is_read() -> None:
    wave = read_wave(GOOD[:1_044])
    assert wave.pcm is not None
    assert wave.pcm.size == 500
