"""`python -m qualification.container`: lock, build and drill images. Exit codes are those of `qualification.errors`.

lock    resolve the requirement files under locks/ again
base    make the base image where no registry is reachable
image   build an image with its report, bill of materials and provenance
drill   run an image hardened, without measuring, and print its record
compare drill an image, then speak to it and to the same commit outside a container, by turns
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
from pathlib import Path
from types import FrameType

from qualification import strictjson
from qualification.bench.clock import Clock
from qualification.bench.target import parse_target
from qualification.container import base, lock
from qualification.container.faults import ContainerFault
from qualification.container.image import LAYOUT, SBOM, ImageOrder, make_image
from qualification.container.keep import keep
from qualification.container.parity import FILE as PARITY
from qualification.container.parity import ParityPlan, measure_parity
from qualification.container.record import FILE as RECORD
from qualification.container.record import ContainerRecord
from qualification.container.subject import ContainerOrder, container_subject
from qualification.errors import QualificationError
from qualification.paths import PINS, data_file
from qualification.policy import load_policy
from qualification.subject import engine_command, started
from qualification.workload import Kind, load_workload

CHECKOUT = Path(__file__).resolve().parents[2]
OUTPUT = CHECKOUT / "build" / "container"
RUN_ID = "container-drill"
INTERRUPTED = 130


def main(argv: list[str] | None = None) -> int:
    """Run one command; the only place that turns errors into exit codes."""
    arguments = _parser().parse_args(argv)
    arguments.output = arguments.output or OUTPUT / arguments.variant
    signal.signal(signal.SIGTERM, _as_interrupt)  # so that registries and containers are cleaned up
    try:
        return _COMMANDS[arguments.command](arguments)
    except QualificationError as error:
        name = f"{error.code}: " if isinstance(error, ContainerFault) else ""
        print(f"error: {name}{error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        print("error: interrupted", file=sys.stderr)
        return INTERRUPTED


def _as_interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _lock(arguments: argparse.Namespace) -> int:
    for target, requirements, public in (
        ("runtime-cpu.txt", "runtime.in", False),
        ("runtime-cuda.txt", "runtime.in", True),
        ("build.txt", "build.in", False),
    ):
        lines = (arguments.locks / requirements).read_text(encoding="utf-8").splitlines()
        wanted = [line.strip() for line in lines if line.strip() and not line.startswith("#")]
        (arguments.locks / target).write_text(lock.resolve(wanted, public_torch=public), encoding="utf-8")
        print(f"{target}: {len(lock.read(arguments.locks / target))} wheels")
    return 0


def _base(arguments: argparse.Namespace) -> int:
    image = base.make_base(arguments.output.parent / "base", base.load_plan())
    print(json.dumps(image.digests, sort_keys=True))
    return 0


def _image(arguments: argparse.Namespace) -> int:
    report = make_image(
        ImageOrder(
            checkout=CHECKOUT,
            output=arguments.output,
            variant=arguments.variant,
            model=arguments.model,
            pins=arguments.pins,
            engine=arguments.engine,
            locks=arguments.locks,
            wheels=arguments.wheelhouse,
            repository=arguments.source,
            base=arguments.base,
            builds=2 if arguments.twice else 1,
            clean=arguments.clean,
        )
    )
    if arguments.keep_sbom is not None:
        keep(arguments.output / LAYOUT, (arguments.output / SBOM).read_bytes(), load_policy(), arguments.keep_sbom)
    print(json.dumps({name: report[name] for name in ("digests", "tier", "variant", "reproduction")}, sort_keys=True))
    return 0 if report["reproduction"]["equal"] is not False else 1


def _drill(arguments: argparse.Namespace) -> int:
    record = ContainerRecord()
    layout = None if arguments.image else arguments.output / LAYOUT
    try:
        with container_subject(
            ContainerOrder(image=arguments.image, layout=layout, registry=arguments.registry), record
        ):
            pass
    finally:
        sys.stdout.buffer.write(strictjson.dumps(record.document(RUN_ID)))
    return 0


def _compare(arguments: argparse.Namespace) -> int:
    record, clock = ContainerRecord(), Clock()
    order = ContainerOrder(image=arguments.image, layout=arguments.output / LAYOUT, registry=arguments.registry)
    items = load_workload().items(Kind.BENCH, seeds=1)
    with container_subject(order, record) as subject:
        model = subject.model or arguments.model
        with started(engine_command(model=model, precision=None, device="cpu"), clock) as bare:
            target = parse_target(subject.url)
            parity = measure_parity(RUN_ID, bare.target, target, items, ParityPlan(rounds=arguments.rounds), clock)
    for name, document in ((RECORD, record.document(RUN_ID)), (PARITY, parity)):
        (arguments.output / name).write_bytes(strictjson.dumps(document))
        print(arguments.output / name)
    return 0


_COMMANDS = {"lock": _lock, "base": _base, "image": _image, "drill": _drill, "compare": _compare}


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m qualification.container", description="Lock, build and drill images.", allow_abbrev=False
    )
    parser.add_argument("command", choices=sorted(_COMMANDS))
    parser.add_argument(
        "--variant", default="cpu", choices=("cpu", "cuda"), help="which lock, and so which build of torch"
    )
    parser.add_argument("--output", type=Path, help="directory of the image (default: build/container/VARIANT)")
    parser.add_argument("--base", metavar="NAME@DIGEST", help="take a base from a registry instead of making one")
    parser.add_argument("--image", metavar="NAME@DIGEST", help="drill somebody else's image")
    parser.add_argument("--registry", metavar="HOST:PORT", help="push to this registry instead of starting one")
    parser.add_argument(
        "--model",
        type=Path,
        default=CHECKOUT / "engine" / "reference_model",
        help="model directory (default: the embedded model)",
    )
    parser.add_argument("--pins", type=Path, default=data_file(PINS), help="hashes of the known models")
    parser.add_argument("--engine", type=Path, default=CHECKOUT / "engine", help="the package that serves")
    parser.add_argument("--locks", type=Path, default=CHECKOUT / "locks", help="directory of the locks")
    parser.add_argument(
        "--wheelhouse",
        type=Path,
        default=CHECKOUT / "wheelhouse",
        help="directory of wheels, filled where it lacks some",
    )
    parser.add_argument("--source", default="urn:assay:source", help="where the source is published, for the labels")
    parser.add_argument("--rounds", type=int, default=8, help="paired rounds of `compare`")
    parser.add_argument("--keep-sbom", type=Path, metavar="DIR", help="keep bill of materials, notices, licences here")
    parser.add_argument("--twice", action="store_true", help="build twice and compare")
    parser.add_argument("--clean", action="store_true", help="refuse a tree with changes")
    return parser


if __name__ == "__main__":
    sys.exit(main())
