"""The command line of the harness. The only place that turns errors into exit statuses.

    0        qualify, verify: sound and qualified; the other commands: done
    1        a fault of the harness itself
    2        usage: the command line asks for something impossible
    3        input: policy, pins, workload, plan or model directory cannot be used
    4        subject: the engine did not start, answer or survive; what was measured is kept, unsealed
    5        bundle: the output directory exists, or a bundle cannot be written or read
    6        signing: a key cannot be used
    7        sound, and not qualified; with --gates: a required gate of the subset did not pass
    8        compare: the verifier refuses one of the bundles
    9        sound, and incomplete: a subset of the gates was asked for, and no required one of it fell short
    10..15   the verifier refuses the bundle (10 structure, 11 authenticity, 12 document, 13 binding, 14 recomputation,
             15 plausibility)
    16       compare --fail-if-worse: the bound says worse by more than the limit
    17       compare --fail-if-worse: it cannot be told, which is no pass
    130      interrupted; what was measured is kept, unsealed

Progress goes to standard error, the answer to standard output.
"""

from __future__ import annotations

import argparse
import json
import shlex
import signal
import sys
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from types import FrameType

from qualification import bundle, detached, paths, signing
from qualification.batch_invariance import document as batch_invariance_of
from qualification.comparison.asking import DEFAULT_MARGIN, aspects, share
from qualification.controlled import arguments as controlled
from qualification.controlled.record import SCHEDULE
from qualification.digest import sha256_file
from qualification.drawing import report_program
from qualification.errors import BundleError, QualificationError, UsageError
from qualification.evidence_view import EvidenceView
from qualification.gates.table import GATES
from qualification.listening.attach import attach
from qualification.schema import validate
from qualification.strictjson import dumps, write_once
from qualification.verify.controlled import verify_controlled
from qualification.verify.findings import FAMILIES
from qualification.verify.trust import load_trust
from qualification.verify.verifier import verify

INTERRUPTED = 130


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status."""
    arguments = _parser().parse_args(argv)
    command: Callable[[argparse.Namespace], int] = arguments.run
    previous = signal.signal(signal.SIGTERM, _as_interrupt)
    try:
        return command(arguments)
    except QualificationError as error:
        _say(str(error))
        return error.exit_code
    except OSError as error:
        _say(f"{error.filename or 'file'}: {error.strerror or error}; check that it exists and can be used")
        return BundleError.exit_code
    except KeyboardInterrupt:
        _say("interrupted")
        return INTERRUPTED
    finally:
        signal.signal(signal.SIGTERM, previous)


def qualify(arguments: argparse.Namespace) -> int:
    """Qualify a subject and verify the bundle that came out."""
    # Imported here: the verifier's environment has neither HTTP client nor sampler, and `verify` must run in it.
    from qualification.inputs import Options
    from qualification.qualify import qualify as run

    options = Options(
        model=arguments.model,
        endpoint=arguments.endpoint,
        precision=arguments.precision,
        device=arguments.device,
        out=arguments.out,
        policy=arguments.policy,
        pins=arguments.pins,
        workload=arguments.workload,
        plan=arguments.plan,
        key=arguments.key,
        engine_command=tuple(shlex.split(arguments.engine_command or "")),
        image=arguments.image,
        tier=arguments.tier,
        container=arguments.container,
        accept_symlinks=arguments.accept_symlinks,
        gates=_words(arguments.gates),
        resume=arguments.resume,
        rounds=arguments.rounds,
        eos_rate=arguments.eos_rate,
    )
    return run(options, as_json=arguments.json)


def check(arguments: argparse.Namespace) -> int:
    """Verify a bundle, or a controlled comparison of two, offline."""
    if not arguments.path.is_dir():
        raise BundleError(f"{arguments.path} is no directory; give the directory that holds manifest.json")
    trust = load_trust(
        policy=arguments.policy,
        pins=arguments.pins,
        keys=tuple(arguments.key),
        reviewer_keys=tuple(arguments.reviewer_key),
    )
    program = verify_controlled if (arguments.path / SCHEDULE).exists() else verify
    checked = program(arguments.path, trust, GATES, report_program())
    if arguments.json:
        print(json.dumps(checked.to_json(), sort_keys=True, ensure_ascii=False))
    else:
        print("\n".join(checked.lines()))
    return checked.exit_code


def compare(arguments: argparse.Namespace) -> int:
    """Verify bundles of two subjects and compare what they measured."""
    if find_spec("rich") is None:
        raise UsageError("the comparison needs its table; install `tts-assay[harness]`")
    from qualification.comparison.command import compare_bundles
    from qualification.comparison.document import Asked
    from qualification.comparison.table import show
    from qualification.progress import console_for

    trusts = [
        load_trust(policy=policy, pins=pins, keys=tuple(arguments.key))
        for policy in arguments.policy or [None]
        for pins in arguments.pins or [None]
    ]
    limit = arguments.fail_if_worse
    within = arguments.within if arguments.within is not None else DEFAULT_MARGIN if limit is None else limit
    asked = Asked(within=within, allow=arguments.allow, limit=limit)
    result = compare_bundles(arguments.bundles, trusts, asked)
    if arguments.out is not None:
        write_once(arguments.out, dumps(result.document))
    if arguments.json:
        sys.stdout.buffer.write(dumps(result.document))
    else:
        show(result.document, console_for(stderr=False))
    if result.failure is not None:
        raise result.failure
    return 0


def report(arguments: argparse.Namespace) -> int:
    """Draw the report of a bundle again, outside of it, with the audio reviews that were added to it."""
    draw = report_program(added=True)
    if draw is None:
        raise UsageError("the report needs its template engine; install `tts-assay[harness]`")
    out = arguments.out if arguments.out is not None else arguments.path.with_name(f"{arguments.path.name}.html")
    write_once(out, draw(EvidenceView(arguments.path)).encode())
    print(out)
    return 0


def batch_invariance(arguments: argparse.Namespace) -> int:
    """Say of each request whether it sounded the same alone and beside others."""
    document = batch_invariance_of(EvidenceView(arguments.path))
    validate("batch-invariance", document, "batch-invariance")
    if arguments.out is None:
        sys.stdout.buffer.write(dumps(document))
    else:
        write_once(arguments.out, dumps(document))
        print(arguments.out)
    return 0


def review_page(arguments: argparse.Namespace) -> int:
    """Draw the page on which listeners rate the clips of one bundle, or pairs of two."""
    if find_spec("jinja2") is None:
        raise UsageError("the review page needs its template engine; install `tts-assay[harness]`")
    from qualification.report.review import render_review  # needs the template engine

    out = arguments.out if arguments.out is not None else arguments.path.with_name(f"{arguments.path.name}.review.html")
    other = None if arguments.other is None else EvidenceView(arguments.other)
    write_once(out, render_review(EvidenceView(arguments.path), other).encode())
    print(out)
    return 0


def attach_review(arguments: argparse.Namespace) -> int:
    """Sign an exported review and add it to its bundle as a layer."""
    print(attach(arguments.path, arguments.record, signing.load_private(arguments.key)))
    return 0


def audio_review(arguments: argparse.Namespace) -> int:
    """Check the stored utterances of a sealed bundle and add what is found as a layer."""
    # Imported here: `verify` must run where the review's programs are not installed.
    from qualification.audio_review import recogniser, review
    from qualification.audio_review.policy import load
    from qualification.audio_review.programs import ASKED
    from qualification.audio_review.record import Request

    unknown = sorted(set(_words(arguments.without)) - set(ASKED))
    if unknown:
        raise UsageError(f"--without {', '.join(unknown)}: name some of {', '.join(ASKED)}")
    request = Request(
        policy=load(arguments.policy),
        say=_progress,
        recogniser=None if arguments.recogniser is None else recogniser.mount(arguments.recogniser),
        without=frozenset(_words(arguments.without)),
    )
    evidence = EvidenceView(arguments.path)
    if arguments.check:
        found = review.ask_again(evidence, request)
        print("\n".join(f"{name}: {line}" for name, lines in found.items() for line in lines or ["the same again"]))
        return FAMILIES["recomputation"] if any(found.values()) else 0
    key = None if arguments.key is None else signing.load_private(arguments.key)
    name, made = review.attach(evidence, request, key)
    print("\n".join([*review.table(made), f"{arguments.path / name}"]))
    return 0


def pin(arguments: argparse.Namespace) -> int:
    """Pin a model that this project made, so that its directory has a tier."""
    # Imported here: spelling licences needs a package that the verifier's environment lacks.
    from qualification.pinning import pin_model

    pinned = pin_model(
        arguments.model,
        tier=arguments.tier,
        model_id=arguments.model_id,
        licence=arguments.licence,
        source=arguments.source,
        pins_path=arguments.pins,
        revision=arguments.revision,
    )
    print(f"{arguments.pins}: {pinned.id}, tier {pinned.tier}, {len(pinned.files)} files")
    return 0


def keygen(arguments: argparse.Namespace) -> int:
    """Make a key pair: PRIVATE, and PRIVATE.pub to hand to verifiers."""
    public = arguments.private.with_name(f"{arguments.private.name}.pub")
    print(f"{public}: key id {signing.write_pair(arguments.private, public)}")
    return 0


def sign(arguments: argparse.Namespace) -> int:
    """Sign a sealed bundle."""
    bundle.sign_bundle(arguments.path, signing.load_private(arguments.key))
    print(f"{arguments.path / paths.STATEMENT}: {sha256_file(arguments.path / paths.STATEMENT)}")
    return 0


def statement(arguments: argparse.Namespace) -> int:
    """Print what a tool of one's own signs."""
    wanted = detached.encoded if arguments.pae else detached.statement_bytes
    data = wanted(arguments.path)
    if arguments.out is None:
        sys.stdout.buffer.write(data)
    else:
        write_once(arguments.out, data)
    return 0


def attach_signature(arguments: argparse.Namespace) -> int:
    """Attach an Ed25519 signature that another tool made."""
    signature = arguments.signature.read_bytes()
    print(detached.attach(arguments.path, signature, signing.load_public(arguments.key)))
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m qualification",
        description="Qualifies voice-design engines and verifies the evidence.",
        epilog=(__doc__ or "").partition("\n\n")[2],
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    _add_qualify(commands.add_parser("qualify", help="measure a subject and seal the evidence", allow_abbrev=False))
    checking = _add(commands, "verify", check, "verify a bundle offline, without torch and without network")
    checking.add_argument("path", type=Path, metavar="PATH", help="directory of the bundle")
    checking.add_argument("--policy", type=Path, help="the policy that you accept (default: the packaged one)")
    checking.add_argument("--pins", type=Path, help="the pins that you accept (default: the packaged ones)")
    checking.add_argument("--key", type=Path, action="append", default=[], help="a public key that you trust")
    checking.add_argument(
        "--reviewer-key", type=Path, action="append", default=[], help="public key of a listener that you trust"
    )
    checking.add_argument("--json", action="store_true", help="answer with one JSON document")
    drawing = _add(commands, "report", report, "draw the report of a bundle again")
    drawing.add_argument("path", type=Path, metavar="PATH", help="directory of the bundle")
    drawing.add_argument("--out", type=Path, help="file to write (default: PATH.html)")
    controlled.add(commands.add_parser(controlled.NAME, help=controlled.HELP, allow_abbrev=False))
    invariance = _add(
        commands, "batch-invariance", batch_invariance, "compare requests alone and beside others, as data"
    )
    invariance.add_argument("path", type=Path, metavar="PATH", help="directory of the bundle; verify it first")
    invariance.add_argument("--out", type=Path, metavar="FILE", help="document to write (default: standard output)")
    _add_compare(_add(commands, "compare", compare, "compare the verified bundles of two subjects"))
    _add_reviewing(commands)
    _add_audio_review(_add(commands, "audio-review", audio_review, "check the stored utterances of a sealed bundle"))
    _add_pin(_add(commands, "pin", pin, "pin a model that this project made by the hashes of its files"))
    making = _add(commands, "keygen", keygen, "make an Ed25519 key pair")
    making.add_argument("private", type=Path, metavar="PRIVATE", help="file of the private key; PRIVATE.pub is public")
    signed = _add(commands, "sign", sign, "sign a sealed bundle")
    signed.add_argument("path", type=Path, metavar="PATH", help="directory of the bundle")
    signed.add_argument("--key", type=Path, required=True, help="private key in PEM")
    _add_foreign_signing(commands)
    return parser


def _add_qualify(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(run=qualify)
    subject = parser.add_mutually_exclusive_group()
    subject.add_argument(
        "--endpoint", metavar="URL", help="a server that runs already; with --model its files are hashed"
    )
    subject.add_argument("--image", metavar="NAME@DIGEST", help="run somebody else's image; a tag is refused")
    subject.add_argument(
        "--container", action="store_true", help="run an image of this commit, built where none is there; with --model "
        "of that model; without a container engine the engine runs as a process, and the record says so"
    )  # fmt: skip
    subject.add_argument("--engine-command", metavar="COMMAND", help="start another engine that speaks the same wire")
    parser.add_argument("--model", type=Path, metavar="DIR", help="model directory (default: the embedded model)")
    parser.add_argument(
        "--tier", choices=("reference", "shape", "release"), help="refuse files of another tier; shape without --model "
        "writes the synthetic checkpoint first (4.3 GB, once)",
    )  # fmt: skip
    parser.add_argument(
        "--accept-symlinks", action="store_true", help="follow links in the model directory, which then has no tier"
    )
    parser.add_argument("--precision", help="passed on to the engine: fp32, bf16, int8")
    parser.add_argument("--device", help="passed on to the engine: cpu, cuda")
    parser.add_argument(
        "--out", type=Path, metavar="DIR", help="bundle to make; must not exist (default: evidence/<run>)"
    )
    parser.add_argument(
        "--resume", type=Path, metavar="DIR", help="go on with the unsealed run in DIR; nothing else needs to be given, "
        "and whatever is must be as it was",
    )  # fmt: skip
    parser.add_argument("--policy", type=Path, metavar="FILE", help="gates, limits and counts by tier")
    parser.add_argument("--pins", type=Path, metavar="FILE", help="hashes of the known models")
    parser.add_argument("--workload", type=Path, metavar="FILE", help="what is spoken, with which seeds")
    parser.add_argument("--plan", type=Path, metavar="FILE", help="load profiles by tier")
    parser.add_argument(
        "--gates", metavar="A,B", help="answer these gates of the policy alone and measure only what they need; the "
        "verdict is then incomplete (exit 9, or 7 where one of them is required and did not pass)",
    )  # fmt: skip
    parser.add_argument(
        "--eos-rate", type=int, metavar="N", help="N requests more, over languages and seeds, to bound the rate of those "
        "that do not end by themselves: 598 without one bound it at 0.5 %%"
    )  # fmt: skip
    parser.add_argument(
        "--rounds", type=int, metavar="N", help="split each load profile into N rounds; a comparison needs 6"
    )
    parser.add_argument("--key", type=Path, metavar="FILE", help="private key that signs the bundle")
    parser.add_argument("--json", action="store_true", help="answer with one JSON document on standard output")


def _add_compare(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "bundles", type=Path, nargs="+", metavar="BUNDLE", help="A and B; or A B A B, where sides were run in turn"
    )
    parser.add_argument(
        "--fail-if-worse",
        type=share,
        metavar="3%",
        help="exit 16 where B is worse by more, 17 where that cannot be told",
    )
    parser.add_argument(
        "--within",
        type=share,
        metavar="5%",
        help="margin of `no difference` (default: that of --fail-if-worse, or 5%%)",
    )
    parser.add_argument(
        "--allow", type=aspects, default=frozenset(), metavar="LIST",
        help="compare although these differ, and say so: machine, workload, sampling, tier",
    )  # fmt: skip
    parser.add_argument("--policy", type=Path, action="append", help="a policy that you accept (default: the packaged)")
    parser.add_argument("--pins", type=Path, action="append", help="pins that you accept (default: the packaged ones)")
    parser.add_argument("--key", type=Path, action="append", default=[], help="a public key that you trust")
    parser.add_argument("--out", type=Path, metavar="FILE", help="document to write; must not exist")
    parser.add_argument("--json", action="store_true", help="the document on standard output, in place of the table")


def _add_foreign_signing(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    stating = _add(
        commands, "statement", statement, "print the statement over a bundle, for a signing tool of your own"
    )
    stating.add_argument("path", type=Path, metavar="PATH", help="directory of the bundle")
    stating.add_argument(
        "--pae", action="store_true", help="the encoding that an Ed25519 signature covers, for attach-signature"
    )
    stating.add_argument("--out", type=Path, help="file to write (default: standard output)")
    attaching = _add(commands, "attach-signature", attach_signature, "attach an Ed25519 signature made by another tool")
    attaching.add_argument("path", type=Path, metavar="PATH", help="directory of the bundle")
    attaching.add_argument("signature", type=Path, metavar="SIGNATURE", help="64 bytes, or their base64")
    attaching.add_argument("--key", type=Path, required=True, help="public key of the signer, in PEM")


def _add_reviewing(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    page = _add(commands, "review-page", review_page, "draw the page on which listeners rate clips blind")
    page.add_argument("path", type=Path, metavar="PATH", help="directory of the bundle")
    page.add_argument("other", type=Path, nargs="?", metavar="OTHER", help="a second bundle: offer pairs, A/B")
    page.add_argument("--out", type=Path, help="file to write (default: PATH.review.html)")
    attaching = _add(commands, "attach-review", attach_review, "sign an exported review and add it to its bundle")
    attaching.add_argument("path", type=Path, metavar="PATH", help="directory of the bundle")
    attaching.add_argument("record", type=Path, metavar="RECORD", help="the file that the review page exported")
    attaching.add_argument("--key", type=Path, required=True, help="the reviewer's private key in PEM")


def _add_audio_review(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("path", type=Path, metavar="PATH", help="directory of the bundle")
    parser.add_argument(
        "--recogniser", type=Path, metavar="DIR", help="a mounted recogniser: directory with recogniser.json"
    )
    parser.add_argument("--without", metavar="NAMES", help="programs to leave out: sox, loudness, voice, dnsmos")
    parser.add_argument("--policy", type=Path, metavar="FILE", help="checks, limits and pinned models of the review")
    parser.add_argument("--key", type=Path, metavar="FILE", help="private key that signs the record")
    parser.add_argument(
        "--check", action="store_true", help="add nothing: ask everything again and compare with the reviews there"
    )


def _add_pin(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", type=Path, metavar="MODEL_DIR", help="directory whose every file is pinned")
    parser.add_argument("--tier", required=True, help="reference or shape; release pins are written by hand")
    parser.add_argument("--model-id", required=True, metavar="ID", help="name; pins of that name are replaced")
    parser.add_argument("--licence", required=True, metavar="SPDX", help="SPDX expression of the model's licence")
    parser.add_argument("--source", required=True, metavar="TEXT", help="where the files come from")
    parser.add_argument("--revision", help="revision at the source, where it has any")
    parser.add_argument(
        "--pins", type=Path, metavar="FILE", default=paths.data_file(paths.PINS),
        help="pins to write (default: the packaged ones)",
    )  # fmt: skip


def _add(
    commands: argparse._SubParsersAction[argparse.ArgumentParser],
    name: str,
    run: Callable[[argparse.Namespace], int],
    text: str,
) -> argparse.ArgumentParser:
    parser = commands.add_parser(name, help=text, description=text, allow_abbrev=False)
    parser.set_defaults(run=run)
    return parser


def _words(text: str | None) -> tuple[str, ...]:
    """A comma-separated list; nothing given is an empty one, and an empty word stays to be refused."""
    return () if text is None else tuple(word.strip() for word in text.split(","))


def _progress(text: str) -> None:
    print(text, file=sys.stderr)


def _say(text: str) -> None:
    print(f"error: {text}", file=sys.stderr)


def _as_interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt
