"""How the command line writes what a comparison is asked for. Needs nothing but the standard library."""

from __future__ import annotations

import argparse
import re
from typing import Final

DEFAULT_MARGIN: Final = 0.05
ASPECT_NAMES: Final = ("machine", "workload", "sampling", "tier")
_PERCENT: Final = re.compile(r"([0-9]{1,3}(?:\.[0-9]{1,4})?) ?%")


def share(text: str) -> float:
    """`3%` -> 0.03; the sign is asked for, so that 0.03 cannot be meant as a share and read as a percentage."""
    found = _PERCENT.fullmatch(text.strip())
    if found is None or not 0 < float(found[1]) < 100:
        raise argparse.ArgumentTypeError(f"{text!r} is no percentage over 0 and under 100; write it as 3%")
    return round(float(found[1]) / 100, 6)


def aspects(text: str) -> frozenset[str]:
    """`machine,tier` -> the names."""
    names = frozenset(name.strip() for name in text.split(","))
    unknown = names - set(ASPECT_NAMES)
    if unknown:
        raise argparse.ArgumentTypeError(f"{sorted(unknown)[0]!r} is none of {', '.join(ASPECT_NAMES)}")
    return names
