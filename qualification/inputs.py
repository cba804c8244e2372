"""What a run starts from, read and checked before anything is started: policy, pins, workload, and where things lie."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from qualification import schema
from qualification.bench.profiles import ENDS, load_plan, with_rate
from qualification.bench.target import parse_target
from qualification.container.faults import ContainerFault
from qualification.container.reference import parse as parse_reference
from qualification.errors import BundleError, InputError, UsageError
from qualification.paths import JOURNAL_DIRECTORY, MANIFEST
from qualification.pins import Pins, load_pins
from qualification.policy import Policy, load_policy
from qualification.selection import select_gates
from qualification.signing import load_private
from qualification.subject import embedded_model, shape_model
from qualification.workload import Workload, load_workload

EVIDENCE = Path("evidence")
MAX_ROUNDS = 100
BESIDE = (SUMMARY, RESULTS) = ("summary.md", "junit.xml")


@dataclass(frozen=True, kw_only=True)
class Options:
    """What the command line asked for. None: the default, or nothing. `engine_command` starts a foreign engine that
    prints the same `listening` line. `image` runs somebody else's image by digest, `container` one of this commit;
    `tier` is what the files must amount to; they decide. `accept_symlinks` follows links in the model directory, which
    then has no tier. `gates` asks for a subset; empty asks for all. `resume` is the directory
    of a run to go on with; what is not given then is what that run was begun with.
    `rounds` splits the load profiles into so many rounds; `eos_rate` adds so many requests for the rate of natural ends.
    `sampling` is sent with each request; None leaves it to the subject."""

    model: Path | None = None
    endpoint: str | None = None
    precision: str | None = None
    device: str | None = None
    out: Path | None = None
    policy: Path | None = None
    pins: Path | None = None
    workload: Path | None = None
    plan: Path | None = None
    key: Path | None = None
    engine_command: tuple[str, ...] = ()
    image: str | None = None
    container: bool = False
    tier: str | None = None
    accept_symlinks: bool = False
    gates: tuple[str, ...] = ()
    resume: Path | None = None
    rounds: int | None = None
    eos_rate: int | None = None
    sampling: Mapping[str, Any] | None = None


@dataclass(frozen=True, kw_only=True)
class Inputs:
    """Checked inputs. `model` None: an endpoint or a foreign engine whose files nobody can hash, or an image, which
    brings its own. `gates_selected` None: all; else a part of the policy's gates, in its order."""

    options: Options
    run_id: str
    out: Path
    policy: Policy
    pins: Pins
    workload: Workload
    model: Path | None
    key: Ed25519PrivateKey | None
    gates_selected: tuple[str, ...] | None = None


def prepare(options: Options) -> Inputs:
    """Read every input; nothing is written or started.

    Raises:
        UsageError: options that contradict each other, an endpoint that is no URL, an image by tag, or a gate that the
            policy lacks.
        BundleError: the output directory, or a summary beside it, exists; or there is no run to go on with.
        InputError, SigningError: an input document or key cannot be used.
    """
    start = _start_of(options)
    if start is not None:
        options = recalled(options, start)
    _check_subject(options)
    run_id = start["run_id"] if start is not None else f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}-{secrets.token_hex(3)}"
    out = options.resume or options.out or EVIDENCE / run_id
    fresh = () if options.resume else (out,)
    for place in (*fresh, *(beside(out, ending) for ending in BESIDE)):
        if place.exists() or place.is_symlink():
            raise BundleError(f"{place} exists already; evidence is written once, choose another directory")
    model = options.model
    if model is None and options.endpoint is None and options.image is None and not options.engine_command:
        model = shape_model() if options.tier == "shape" else embedded_model()
    try:
        policy, pins = load_policy(options.policy), load_pins(options.pins)
        workload = load_workload(options.workload)
        for tier in policy.tiers:
            # which one will run is known only when the weights are hashed
            plan = load_plan(tier, workload, options.plan, rounds=options.rounds)
            if options.eos_rate is not None and any(profile.name == ENDS for profile in plan.profiles):
                with_rate(plan, options.eos_rate, workload)
    except OSError as error:
        raise InputError(f"{error.filename}: {error.strerror}; give a file that can be read") from error
    return Inputs(
        options=options,
        run_id=run_id,
        out=out,
        policy=policy,
        pins=pins,
        workload=workload,
        model=model,
        key=load_private(options.key) if options.key else None,
        gates_selected=select_gates(options.gates, policy),
    )


def beside(out: Path, ending: str) -> Path:
    """A file beside a bundle, named after it."""
    return out.with_name(f"{out.name}.{ending}")


def _start_of(options: Options) -> Mapping[str, Any] | None:
    """What the run to go on with was begun with; None for a new run."""
    if options.resume is None:
        return None
    if options.out is not None:
        raise UsageError("--resume goes on in its own directory; leave --out out")
    place = options.resume / JOURNAL_DIRECTORY / "start.json"
    if not place.is_file():
        sealed = (options.resume / MANIFEST).exists()
        why = "it is sealed already" if sealed else f"it holds no {JOURNAL_DIRECTORY}/start.json"
        raise BundleError(f"{options.resume} is no run that can go on: {why}; begin a new run")
    return cast(Mapping[str, Any], schema.load("journal", place))


def recalled(options: Options, start: Mapping[str, Any]) -> Options:
    """What the run was asked for, overridden by what the command line gives now."""
    then = {name: _option(name, value) for name, value in start["options"].items()}
    now = {field.name: getattr(options, field.name) for field in fields(Options)}
    given = {field.name: now[field.name] for field in fields(Options) if now[field.name] != field.default}
    return Options(**{**then, **given})


def options_json(options: Options) -> dict[str, Any]:
    """What `journal/start.json` keeps of the command line: everything but where the run lies."""
    values = {name: value for name, value in asdict(options).items() if name not in ("out", "resume")}
    return {
        name: str(value.absolute()) if isinstance(value, Path) else list(value) if isinstance(value, tuple) else value
        for name, value in values.items()
    }


def _option(name: str, value: Any) -> Any:
    if isinstance(value, list):
        return tuple(value)
    kinds = {field.name: str(field.type) for field in fields(Options)}
    return Path(value) if value is not None and kinds[name].startswith("Path") else value


def _check_subject(options: Options) -> None:
    if options.endpoint is not None:
        parse_target(options.endpoint)
        if options.precision or options.device or options.engine_command:
            raise UsageError("--precision, --device and --engine-command set up an engine that is started here; "
                             "an endpoint runs already")  # fmt: skip
    if options.rounds is not None and not 1 <= options.rounds <= MAX_ROUNDS:
        raise UsageError(f"--rounds {options.rounds} is not within 1 and {MAX_ROUNDS}; a comparison needs 6")
    if options.eos_rate is not None and options.eos_rate < 1:
        raise UsageError(f"--eos-rate {options.eos_rate} is no number of requests; 600 can bound the rate at 0.5 %")
    if options.tier == "release" and options.model is None and options.image is None:
        raise UsageError("--tier release needs the published checkpoint; name its directory with --model")
    subjects = (options.endpoint, options.engine_command, options.image, options.container)
    if sum(bool(subject) for subject in subjects) > 1:
        raise UsageError("--endpoint, --engine-command, --image and --container each name the subject; give one")
    if options.image is None and not options.container:
        return
    if options.precision or options.device:
        raise UsageError("--precision and --device set up a process; an image brings its own settings")
    if options.image is not None:
        if options.model is not None:
            raise UsageError("--image brings its own model files, which are hashed; leave --model out")
        _check_reference(options.image)


def _check_reference(image: str) -> None:
    try:
        parse_reference(image)
    except ContainerFault as fault:
        raise UsageError(f"{fault.code}: {fault}") from fault
