"""Tampers with the seal: files, manifest, statement and signature."""

from __future__ import annotations

import base64
import os
from collections.abc import Callable
from typing import Any, Final

from qualification import paths, strictjson
from qualification.tamper.bench import Bench, Reseal
from qualification.tamper.changes import Tamper, case, document, first_audio, manifest_entry, resign


def _other_key_id(bench: Bench) -> None:
    """The attacker's signature under the trusted key's id."""
    trusted = bench.read(paths.STATEMENT)["signatures"][0]["keyid"]
    resign(bench)
    bench.edit(paths.STATEMENT, lambda envelope: envelope["signatures"][0].update(keyid=trusted))


def _payload(change: Callable[[dict[str, Any]], object]) -> Callable[[Bench], None]:
    """Change the statement inside the envelope and leave the signature."""

    def tamper(bench: Bench) -> None:
        envelope = bench.read(paths.STATEMENT)
        statement = strictjson.loads(base64.b64decode(envelope["payload"]), "payload")
        change(statement)
        envelope["payload"] = base64.b64encode(strictjson.dumps(statement)).decode()
        bench.replace(paths.STATEMENT, strictjson.dumps(envelope))

    return tamper


def _link(bench: Bench) -> None:
    place = bench.root / paths.ENVIRONMENT
    target = bench.root.parent / f"{bench.root.name}.outside.json"
    target.write_bytes(place.read_bytes())
    place.unlink()
    place.symlink_to(target)


def _linked_directory(bench: Bench) -> None:
    target = bench.root.parent / f"{bench.root.name}.outside"
    (bench.root / "samples").rename(target)
    (bench.root / "samples").symlink_to(target, target_is_directory=True)


def _pipe(bench: Bench) -> None:
    os.mkfifo(bench.root / "logs.fifo")


SEALED: Final[tuple[Tamper, ...]] = (
    case("another key under the trusted key's id", "signature.untrusted", _other_key_id, Reseal.NOTHING),
    case("statement removed", "signature.missing", lambda b: (b.root / paths.STATEMENT).unlink(), Reseal.NOTHING),
    case(
        "statement is no envelope", "signature.malformed", lambda b: b.replace(paths.STATEMENT, b"{}\n"), Reseal.NOTHING
    ),
    case(
        "signature is no base64",
        "signature.malformed",
        document(paths.STATEMENT, lambda d: d["signatures"][0].update(sig="AAA")),
        Reseal.NOTHING,
    ),
    case(
        "verdict changed in the statement",
        "signature.untrusted",
        _payload(lambda s: s["predicate"].update(verdict="not_qualified")),
        Reseal.NOTHING,
    ),
    case(
        "a subject removed from the statement",
        "statement.differs",
        _payload(lambda s: s["subject"].pop()),
        Reseal.NOTHING,
    ),
    case("manifest removed", "manifest.missing", lambda b: (b.root / paths.MANIFEST).unlink(), Reseal.NOTHING),
    case(
        "manifest with an unknown field",
        "manifest.malformed",
        document(paths.MANIFEST, lambda d: d.update(note="hello")),
        Reseal.NOTHING,
    ),
    case("manifest names a path outside", "manifest.malformed", manifest_entry(path="../run.json"), Reseal.NOTHING),
    case("manifest names an absolute path", "manifest.malformed", manifest_entry(path="/etc/hostname"), Reseal.NOTHING),
    case(
        "manifest names a file twice",
        "manifest.order",
        document(paths.MANIFEST, lambda d: d["files"].insert(0, d["files"][0])),
        Reseal.NOTHING,
    ),
    case(
        "manifest out of order",
        "manifest.order",
        document(paths.MANIFEST, lambda d: d["files"].reverse()),
        Reseal.NOTHING,
    ),
    case("manifest with a wrong role", "manifest.role", manifest_entry(role="log"), Reseal.NOTHING),
    case("manifest lists itself", "manifest.role", manifest_entry(path=paths.MANIFEST), Reseal.NOTHING),
    case("manifest with a wrong size", "file.size", manifest_entry(bytes=1), Reseal.NOTHING),
    case("manifest with a wrong digest", "file.digest", manifest_entry(sha256="0" * 64), Reseal.NOTHING),
    case("a stored utterance gone", "file.missing", lambda b: (b.root / first_audio(b)).unlink(), Reseal.NOTHING),
    case("a file without a role", "file.extra", lambda b: b.replace("notes.txt", b"hello\n"), Reseal.NOTHING),
    case("a document is a symbolic link", "file.irregular", _link, Reseal.NOTHING),
    case("a directory is a symbolic link", "file.irregular", _linked_directory, Reseal.NOTHING),
    case("a pipe among the files", "file.irregular", _pipe, Reseal.NOTHING),
    case("an empty directory", "file.irregular", lambda b: (b.root / "logs").mkdir(), Reseal.NOTHING),
    case("environment left out", "bundle.incomplete", lambda b: (b.root / paths.ENVIRONMENT).unlink(), Reseal.MANIFEST),
)
