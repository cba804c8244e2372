"""Writes an evidence directory, once, and seals it.

Order: inputs and raw records while the run goes on; then gate results, summary, report, manifest, and the signed
statement where a key was given. Each step reads only what lies in the directory already. A run that dies leaves its files
without a manifest, which no verifier accepts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from qualification import manifest, paths, schema, signing, statement, strictjson, summary
from qualification.bench.raw import RequestRecord, TelemetrySample
from qualification.clip import encode_wav
from qualification.digest import sha256_file
from qualification.errors import BundleError
from qualification.evaluation import Gate, evaluate_all
from qualification.evidence_view import DOCUMENTS, EvidenceView
from qualification.policy import Verdict, parse_policy
from qualification.results import GateResult

Report = Callable[[EvidenceView], str]


class BundleWriter:
    """An evidence directory that is being written.

    Raises:
        BundleError: from every method, where a file would be written twice or lies outside the rules.
    """

    def __init__(self, root: Path) -> None:
        self.root = root

    @classmethod
    def create(cls, root: Path) -> BundleWriter:
        """Make the directory; it must not exist."""
        try:
            root.mkdir(parents=True)
        except FileExistsError:
            raise BundleError(f"{root} exists already; evidence is written once, choose another directory") from None
        return cls(root)

    def document(self, path: str, document: Mapping[str, Any]) -> None:
        """Write one of `evidence_view.DOCUMENTS`, or a `records/*.json` whose `schema` field names its schema."""
        name = DOCUMENTS.get(path) or schema.name_of(document, path)
        schema.validate(name, document, path)
        self._write(path, strictjson.dumps(document))

    def records(self, path: str, records: Iterable[RequestRecord]) -> None:
        """Write a `samples/*.jsonl` file; at least one record."""
        self._lines(path, "request-record", [record.to_json() for record in records])

    def telemetry(self, samples: Iterable[TelemetrySample]) -> None:
        """Write `telemetry.jsonl`; without a sample there is no file."""
        lines = [sample.to_json() for sample in samples]
        if lines:
            self._lines(paths.TELEMETRY, "telemetry", lines)

    def audio(self, path: str, pcm: bytes) -> None:
        """Store an utterance: mono 24 kHz signed 16-bit little-endian samples."""
        self._write(path, encode_wav(pcm))

    def raw_bytes(self, path: str, data: bytes) -> None:
        """Store a log, a bill of materials or another file whose path has a role."""
        self._write(path, data)

    def seal(
        self, gates: Mapping[str, Gate], *, report: Report | None = None, key: Ed25519PrivateKey | None = None
    ) -> Verdict:
        """Evaluate the gates, write results, summary, report, manifest and (with a key) the statement."""
        evidence = EvidenceView(self.root)
        policy = parse_policy(evidence.document(paths.POLICY), paths.POLICY)
        results = evaluate_all(evidence, policy, gates)
        self.document(paths.GATES, gates_document(evidence, results))
        evidence = EvidenceView(self.root)  # a fresh look: the directory has grown
        self.document(paths.SUMMARY, summary.build(evidence, policy, results))
        if report is not None:
            self._write(paths.REPORT, report(EvidenceView(self.root)).encode())
        self.document(paths.MANIFEST, manifest.build(self.root, evidence.run["run_id"]))
        if key is not None:
            sign_bundle(self.root, key)
        return summary.verdict(evidence, policy, results)

    def _lines(self, path: str, name: str, lines: Sequence[Mapping[str, Any]]) -> None:
        if not lines:
            raise BundleError(f"{path}: no record to write; leave the file out and say why in the gate")
        for number, line in enumerate(lines, start=1):
            schema.validate(name, line, f"{path}:{number}")
        self._write(path, b"".join(strictjson.dumps_line(line) for line in lines))

    def _write(self, path: str, data: bytes) -> None:
        if path not in manifest.OUTSIDE:
            manifest.role_of(path)
        strictjson.write_once(self.root / path, data)


def gates_document(evidence: EvidenceView, results: Sequence[GateResult]) -> dict[str, Any]:
    """The document `gates.json`, bound to run, commit, image and policy."""
    run = evidence.run
    image = run["subject"]["image"]
    return {
        "schema": schema.urn("gates"),
        "run_id": run["run_id"],
        "commit": run["source"]["commit"],
        "image": image["platform"] if image else None,
        "policy_sha256": sha256_file(paths.locate(evidence.root, paths.POLICY)),
        "results": [result.to_json() for result in results],
    }


def sign_bundle(root: Path, key: Ed25519PrivateKey) -> None:
    """Write `statement.dsse.json` beside a manifest. Raises `BundleError` where one exists or no manifest does."""
    envelope = signing.sign(strictjson.dumps(statement.build(EvidenceView(root))), key)
    strictjson.write(root / paths.STATEMENT, envelope)
