"""The order of a blind sitting, as a function of its seed alone, so that the verifier can compute it again.

The review page draws the seed and sorts by the same hashes; change both or neither.
"""

from __future__ import annotations

from collections.abc import Iterable

from qualification.digest import sha256_bytes


def order(seed: str, names: Iterable[str]) -> tuple[str, ...]:
    """`names` in the order in which they are offered."""
    return tuple(sorted(names, key=lambda name: sha256_bytes(f"{seed}:order:{name}".encode())))


def swapped(seed: str, name: str) -> bool:
    """Whether the second bundle's clip is offered first in the pair `name`."""
    return int(sha256_bytes(f"{seed}:side:{name}".encode())[0], 16) % 2 == 1
