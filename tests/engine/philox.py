"""Philox 4x64 with ten rounds, written from its publication (Salmon et al., SC 2011), in plain integers.

The engine's own numbers come from NumPy; this is the independent second opinion.
"""

from __future__ import annotations

from collections.abc import Iterator

WORD = 2**64
MULTIPLIERS = (0xD2E7470EE14C6C93, 0xCA5A826395121157)
WEYL = (0x9E3779B97F4A7C15, 0xBB67AE8584CAA73B)
ROUNDS = 10


def philox(counter: int, key: int) -> tuple[int, int, int, int]:
    """The block of four 64-bit words at a 256-bit counter under a 128-bit key."""
    c0, c1, c2, c3 = ((counter >> (64 * index)) % WORD for index in range(4))
    k0, k1 = key % WORD, (key >> 64) % WORD
    for _ in range(ROUNDS):
        first, second = MULTIPLIERS[0] * c0, MULTIPLIERS[1] * c2
        c0, c1, c2, c3 = (second >> 64) ^ c1 ^ k0, second % WORD, (first >> 64) ^ c3 ^ k1, first % WORD
        k0, k1 = (k0 + WEYL[0]) % WORD, (k1 + WEYL[1]) % WORD
    return c0, c1, c2, c3


def words(key: int) -> Iterator[int]:
    """The stream under `key`: blocks of counters 1, 2, 3, …, four words each."""
    counter = 1
    while True:
        yield from philox(counter, key)
        counter += 1
