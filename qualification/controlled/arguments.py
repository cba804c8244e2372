"""The command line of `compare-run`. What it needs to run is imported when it runs: a verifier has none of it."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Final

from qualification.comparison.asking import DEFAULT_MARGIN, aspects, share
from qualification.errors import UsageError

NAME: Final = "compare-run"
HELP: Final = "measure two subjects by turns, seal a bundle of each, and compare them"
_SUBJECT: Final = (
    "engine[,precision=P][,device=D][,model=DIR][,--FLAG=VALUE], official[,precision=P][,device=D][,python=FILE], "
    "image=NAME@DIGEST, endpoint=URL, or command=COMMAND"
)
_ALONE: Final = ("a", "b", "rounds", "profiles", "within", "allow", "tier", "out", "model", "policy", "pins", "workload",
                 "plan", "key")  # fmt: skip


def add(parser: argparse.ArgumentParser) -> None:
    """The options of `compare-run`."""
    parser.set_defaults(run=run)
    parser.add_argument("--a", metavar="SUBJECT", help=_SUBJECT)
    parser.add_argument("--b", metavar="SUBJECT", help="the other one; the verdict says how B is against A")
    parser.add_argument("--rounds", type=int, metavar="N", help="rounds of each profile a side; 2 by default, a "
                        "difference needs 6")  # fmt: skip
    parser.add_argument("--profiles", metavar="B1,B3", help="load profiles of the plan (default: B1,B3,B6)")
    parser.add_argument("--within", type=share, metavar="5%", help="margin of `no difference` (default: 5%%)")
    parser.add_argument("--allow", type=aspects, metavar="LIST", help="compare although these differ: machine, workload, "
                        "sampling, tier")  # fmt: skip
    parser.add_argument("--tier", choices=("reference", "shape", "release"), help="refuse files of another tier")
    parser.add_argument("--out", type=Path, metavar="DIR", help="directory to make (default: evidence/comparison-<id>)")
    parser.add_argument("--resume", type=Path, metavar="DIR", help="go on with the unsealed comparison in DIR; nothing "
                        "else is given")  # fmt: skip
    for name, text in (
        ("model", "model directory of every subject that names none"),
        ("policy", "gates, limits and counts by tier"),
        ("pins", "hashes of the known models"),
        ("workload", "what is spoken, with which seeds"),
        ("plan", "load profiles by tier"),
        ("key", "private key that signs both bundles and the comparison"),
    ):
        parser.add_argument(f"--{name}", type=Path, help=text)
    parser.add_argument("--json", action="store_true", help="answer with one JSON document on standard output")


def run(arguments: argparse.Namespace) -> int:
    """Run the comparison, or go on with it."""
    from qualification.controlled.command import DEFAULT_PROFILES, Request, compare_run
    from qualification.inputs import Options

    if arguments.resume is not None:
        _check_alone(arguments)
    places = {name: getattr(arguments, name) for name in ("model", "policy", "pins", "workload", "plan", "key")}
    profiles = DEFAULT_PROFILES if arguments.profiles is None else tuple(arguments.profiles.split(","))
    request = Request(
        a=arguments.a,
        b=arguments.b,
        shared=Options(**places, tier=arguments.tier),
        profiles=profiles,
        rounds=2 if arguments.rounds is None else arguments.rounds,
        within=arguments.within or DEFAULT_MARGIN,
        allow=arguments.allow or frozenset(),
        out=arguments.out,
        resume=arguments.resume,
    )
    return compare_run(request, as_json=arguments.json)


def _check_alone(arguments: argparse.Namespace) -> None:
    for name in _ALONE:
        if getattr(arguments, name) is not None:
            raise UsageError(f"--resume goes on as the comparison was begun; leave --{name} out")
