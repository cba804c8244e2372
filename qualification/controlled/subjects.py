"""The two subjects as the command line names them: a kind, then settings, with commas between.

    engine,precision=bf16            this project's engine; words that begin with -- are passed on to it
    official,precision=fp32          the official package behind the wire, buffered; `python=` names its interpreter
    image=NAME@sha256:DIGEST         an image by digest
    endpoint=URL                     a server that runs already and speaks the wire
    command=COMMAND                  any other program that prints the `listening` line; takes the rest of the text

Every kind but the image and the endpoint takes `model=DIR`; without it, it is that of --model, or the embedded one.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from qualification.errors import UsageError
from qualification.inputs import Options
from qualification.subject import embedded_model, engine_command

_SETTINGS: Final[Mapping[str, tuple[str, ...]]] = {
    "engine": ("model", "precision", "device"),
    "official": ("model", "precision", "device", "python", "threads"),
    "image": (),
    "endpoint": ("model",),
    "command": ("model",),
}
_OFFICIAL: Final = "qualification.subjects.official_server"


@dataclass(frozen=True, kw_only=True)
class Spec:
    """One subject as it was asked for. `flags` are words for the engine alone."""

    kind: str
    value: str
    settings: Mapping[str, str]
    flags: tuple[str, ...]

    @property
    def label(self) -> str:
        """What was asked for, without paths of the machine."""
        told = [f"{name}={text}" for name, text in sorted(self.settings.items()) if name not in ("model", "python")]
        value = self.value if self.kind in ("image", "endpoint") else ""
        return " ".join([self.kind, *([value] if value else []), *told, *self.flags])


def parse_spec(text: str) -> Spec:
    """Read one subject.

    Raises:
        UsageError: no such kind, or a setting that it does not take.
    """
    head, _, rest = text.strip().partition(",")
    kind, _, value = head.partition("=")
    if kind not in _SETTINGS:
        raise UsageError(f"{text!r} names no subject; begin with one of {', '.join(_SETTINGS)}")
    if kind == "command":
        return Spec(kind=kind, value=text.strip().partition("=")[2], settings={}, flags=())
    if (kind in ("image", "endpoint")) != bool(value):
        raise UsageError(f"{text!r}: {kind} {'needs' if not value else 'takes no'} value after `=`")
    words = [word.strip() for word in rest.split(",")] if rest else []
    flags = tuple(word for word in words if word.startswith("--"))
    if flags and kind != "engine":
        raise UsageError(f"{text!r}: {flags[0]} is passed on to the engine alone")
    settings = dict(_setting(kind, word, text) for word in words if not word.startswith("--"))
    return Spec(kind=kind, value=value, settings=settings, flags=flags)


def options_for(spec: Spec, shared: Options) -> Options:
    """The options of a qualification of this subject, `shared` filled in."""
    model = Path(spec.settings["model"]) if "model" in spec.settings else shared.model
    precision, device = spec.settings.get("precision"), spec.settings.get("device")
    if spec.kind == "image":
        return replace(shared, image=spec.value, model=None)
    if spec.kind == "endpoint":
        return replace(shared, endpoint=spec.value, model=model)
    if spec.kind == "command":
        return replace(shared, engine_command=tuple(shlex.split(spec.value)), model=model)
    model = model or embedded_model()
    if spec.kind == "official":
        return replace(shared, engine_command=_official(spec, model), model=model)
    if not spec.flags:
        return replace(shared, model=model, precision=precision, device=device)
    command = (*engine_command(model=model, precision=precision, device=device), *_split(spec.flags))
    return replace(shared, model=model, engine_command=command)


def _setting(kind: str, word: str, text: str) -> tuple[str, str]:
    name, equals, value = word.partition("=")
    if not equals or not value or name not in _SETTINGS[kind]:
        allowed = ", ".join(f"{item}=" for item in _SETTINGS[kind]) or "nothing"
        raise UsageError(f"{text!r}: {kind} takes {allowed}, not {word!r}")
    return name, value


def _split(flags: tuple[str, ...]) -> list[str]:
    """`--name=value` as two words, which is what the engine's parser reports in its messages."""
    return [part for flag in flags for part in flag.split("=", 1)]


def _official(spec: Spec, model: Path) -> tuple[str, ...]:
    command = [spec.settings.get("python", sys.executable), "-m", _OFFICIAL, "--model", str(model)]
    for name in ("precision", "device", "threads"):
        if name in spec.settings:
            command += [f"--{name}", spec.settings[name]]
    return tuple(command)
