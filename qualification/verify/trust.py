"""What the caller of the verifier brings along, because a bundle cannot vouch for itself: keys, policy and pins."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from qualification import schema
from qualification.paths import PINS, POLICY, data_file
from qualification.signing import TrustedKey, load_public


@dataclass(frozen=True, kw_only=True)
class Trust:
    """Keys may be empty: then nothing is said of who sealed the bundle, or of who listened (`reviewer_keys`). `policy` and
    `pins` are checked documents."""

    policy: Mapping[str, Any]
    pins: Mapping[str, Any]
    keys: tuple[TrustedKey, ...] = ()
    reviewer_keys: tuple[TrustedKey, ...] = ()


def load_trust(
    *,
    policy: Path | None = None,
    pins: Path | None = None,
    keys: tuple[Path, ...] = (),
    reviewer_keys: tuple[Path, ...] = (),
) -> Trust:
    """Read what the caller trusts; policy and pins default to those that ship with the package.

    Raises:
        InputError, SigningError: a document or a key cannot be used; OSError where a document cannot be read.
    """
    return Trust(
        policy=schema.load("policy", policy or data_file(POLICY)),
        pins=schema.load("pins", pins or data_file(PINS)),
        keys=tuple(load_public(path) for path in keys),
        reviewer_keys=tuple(load_public(path) for path in reviewer_keys),
    )
