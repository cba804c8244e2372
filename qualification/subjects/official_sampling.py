"""The wire's `sampling` object as arguments of the official package's `generate`, and back. No torch here.

Both directions exist so that two subjects can be shown to sample alike: what the package was told, read back, must be
what was asked. Every value is explicit; nothing is left to a default of the package or of a checkpoint.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

DEFAULT: Final[Mapping[str, Any]] = {"strategy": "sample", "temperature": 0.9, "top_p": 1.0, "top_k": 50}
DEFAULT_PENALTY: Final = 1.05
_FILTERS: Final = ("temperature", "top_p", "top_k")
_TALKER, _PREDICTOR = ("do_sample", ""), ("subtalker_dosample", "subtalker_")


def to_arguments(sampling: Mapping[str, Any]) -> dict[str, Any]:
    """Keyword arguments of `generate` for a wire object; what it leaves out has the wire's defaults.

    Raises:
        ValueError: a field that the wire does not have, or a filter beside `greedy`.
    """
    unknown = sampling.keys() - {*DEFAULT, "repetition_penalty", "predictor"}
    if unknown:
        raise ValueError(f"sampling has no field {', '.join(sorted(unknown))}")
    talker = {name: value for name, value in sampling.items() if name in DEFAULT}
    penalty = sampling.get("repetition_penalty", DEFAULT_PENALTY)
    return {
        **_stage(talker, *_TALKER),
        **_stage(sampling.get("predictor", {}), *_PREDICTOR),
        "repetition_penalty": float(penalty),
    }


def from_arguments(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The full wire object that `arguments` amount to; greedy stages have no filters."""
    return {
        **_read(arguments, *_TALKER),
        "predictor": _read(arguments, *_PREDICTOR),
        "repetition_penalty": arguments["repetition_penalty"],
    }


def _stage(stage: Mapping[str, Any], switch: str, prefix: str) -> dict[str, Any]:
    unknown = stage.keys() - DEFAULT.keys()
    if unknown:
        raise ValueError(f"sampling.predictor has no field {', '.join(sorted(unknown))}")
    strategy = stage.get("strategy", DEFAULT["strategy"])
    if strategy not in ("sample", "greedy"):
        raise ValueError(f"strategy {strategy!r} is neither sample nor greedy")
    if strategy == "greedy":
        if stage.keys() & set(_FILTERS):
            raise ValueError("greedy takes no temperature, top_p or top_k")
        return {switch: False}
    values = {**DEFAULT, **stage}
    numbers = {"temperature": float(values["temperature"]), "top_p": float(values["top_p"]), "top_k": values["top_k"]}
    return {switch: True, **{f"{prefix}{name}": value for name, value in numbers.items()}}


def _read(arguments: Mapping[str, Any], switch: str, prefix: str) -> dict[str, Any]:
    if not arguments[switch]:
        return {"strategy": "greedy"}
    return {"strategy": "sample", **{name: arguments[f"{prefix}{name}"] for name in _FILTERS}}
