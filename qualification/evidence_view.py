"""Read-only, typed access to the files of one evidence directory, sealed or not yet.

Gates, the summary, the report and the verifier all read through this, so that they cannot read different things.
Every document is parsed strictly and checked against its schema once; every path stays inside the directory.
Digests and the manifest are not checked here: that is the verifier's first step.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, TypeVar

from qualification import paths, schema, spacing, strictjson
from qualification.bench.raw import RequestRecord, TelemetrySample
from qualification.clip import Clip, parse_wav
from qualification.digest import sha256_file
from qualification.errors import BundleError
from qualification.workload import Workload, parse_workload

DOCUMENTS: Final = {
    paths.RUN: "run",
    paths.POLICY: "policy",
    paths.PINS: "pins",
    paths.WORKLOAD: "workload",
    paths.IDENTITY: "identity",
    paths.LICENCES: "licences",
    paths.ENVIRONMENT: "environment",
    paths.PHASES: "phases",
    paths.GATES: "gates",
    paths.SUMMARY: "summary",
    paths.MANIFEST: "manifest",
}
_Row = TypeVar("_Row")


class EvidenceView:
    """The evidence below `root`. Each accessor raises `BundleError` (missing, irregular), `StrictJsonError` or
    `SchemaError`, naming the file; results are cached, so treat them as read-only."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._documents: dict[str, dict[str, Any]] = {}
        self._records: dict[str, tuple[RequestRecord, ...]] = {}
        self._clips: dict[str, Clip] = {}
        self._moments: dict[int, tuple[int, ...]] = {}
        self._windows: dict[tuple[int, int], tuple[TelemetrySample, ...]] = {}

    def exists(self, path: str) -> bool:
        """Whether there is anything at `path`; a link counts, and reading it is then refused."""
        place = self.root / paths.check_bundle_path(path)
        return place.exists() or place.is_symlink()

    def document(self, path: str) -> dict[str, Any]:
        """One of `DOCUMENTS`, parsed and checked."""
        if path not in self._documents:
            document = strictjson.load(paths.locate(self.root, path), path)
            schema.validate(DOCUMENTS[path], document, path)
            self._documents[path] = document
        return self._documents[path]

    def sha256(self, path: str) -> str:
        """SHA-256 of a file's bytes as they lie there."""
        return sha256_file(paths.locate(self.root, path))

    @property
    def run(self) -> dict[str, Any]:
        return self.document(paths.RUN)

    @property
    def leaves_open(self) -> frozenset[str]:
        """What the subject could not set or learn, such as `eos` or `seed`; nothing in runs that do not tell."""
        return frozenset(self.run["subject"].get("leaves_open", ()))

    @property
    def phases(self) -> tuple[dict[str, Any], ...]:
        """The phases in order of their start."""
        return tuple(self.document(paths.PHASES)["phases"])

    @cached_property
    def workload(self) -> Workload:
        return parse_workload(self.document(paths.WORKLOAD), paths.WORKLOAD)

    @cached_property
    def walked(self) -> paths.Walked:
        """Every file in the directory, as it was when first asked."""
        return paths.walk(self.root)

    @cached_property
    def sample_files(self) -> tuple[str, ...]:
        """Raw record files, sorted."""
        prefix = f"{paths.SAMPLES_DIRECTORY}/"
        return tuple(path for path in self.walked.files if path.startswith(prefix) and path.endswith(".jsonl"))

    @cached_property
    def audio_files(self) -> tuple[str, ...]:
        """Stored utterances, sorted."""
        prefix = f"{paths.AUDIO_DIRECTORY}/"
        return tuple(path for path in self.walked.files if path.startswith(prefix))

    def records_in(self, path: str) -> tuple[RequestRecord, ...]:
        """The raw records of one file, in its order."""
        if path not in self._records:
            self._records[path] = self._rows(path, "request-record", RequestRecord.from_json)
        return self._records[path]

    @cached_property
    def all_records(self) -> tuple[RequestRecord, ...]:
        """Every raw record, file by file."""
        return tuple(record for path in self.sample_files for record in self.records_in(path))

    def records(self, *, profile: str | None = None, phase: str | None = "measure") -> tuple[RequestRecord, ...]:
        """Raw records of a profile (None: all) and phase (None: warm-up too); failures included."""
        return tuple(
            record
            for record in self.all_records
            if (profile is None or record.profile == profile) and (phase is None or record.phase == phase)
        )

    @cached_property
    def sessions(self) -> tuple[dict[str, Any], ...]:
        """Records of the sessions in which the subject was started, in order of their numbers."""
        return self._numbered("session")

    @cached_property
    def interruptions(self) -> tuple[dict[str, Any], ...]:
        """Words of the sessions that ended before their time, in order of their numbers."""
        return self._numbered("interruption")

    @cached_property
    def samplers(self) -> tuple[dict[str, Any], ...]:
        """Records of the telemetry processes, one a session, in order of their numbers."""
        return self._numbered("sampler")

    @cached_property
    def telemetry_by_session(self) -> tuple[tuple[TelemetrySample, ...], ...]:
        """Telemetry cut where a session begins: counters of a process start anew there."""
        starts = [session["started_ns"] for session in self.sessions[1:]]
        edges = [bisect_left(self.telemetry, start, key=lambda sample: sample.at_ns) for start in starts]
        return tuple(self.telemetry[low:high] for low, high in pairwise([0, *edges, len(self.telemetry)]))

    def telemetry_of_session(self, at_ns: int) -> tuple[TelemetrySample, ...]:
        """Telemetry of the session that a moment lies in; the samples of the next one say nothing of it."""
        starts = [session["started_ns"] for session in self.sessions[1:]]
        return self.telemetry_by_session[bisect_right(starts, at_ns)]

    def moments_of_session(self, at_ns: int) -> tuple[int, ...]:
        """When telemetry was sampled in the session that a moment lies in."""
        samples = self.telemetry_of_session(at_ns)
        first = samples[0].at_ns if samples else at_ns
        if first not in self._moments:
            self._moments[first] = tuple(sample.at_ns for sample in samples)
        return self._moments[first]

    @cached_property
    def telemetry(self) -> tuple[TelemetrySample, ...]:
        """Telemetry in its order; empty where the run has no such file."""
        if not self.exists(paths.TELEMETRY):
            return ()
        return self._rows(paths.TELEMETRY, "telemetry", TelemetrySample.from_json)

    def telemetry_between(self, start_ns: int, end_ns: int) -> tuple[TelemetrySample, ...]:
        """Telemetry from `start_ns` to `end_ns`, both included."""
        window = (start_ns, end_ns)
        if window not in self._windows:
            self._windows[window] = tuple(sample for sample in self.telemetry if start_ns <= sample.at_ns <= end_ns)
        return self._windows[window]

    @cached_property
    def moments(self) -> tuple[int, ...]:
        """When telemetry was sampled."""
        return tuple(sample.at_ns for sample in self.telemetry)

    def telemetry_around(self, start_ns: int, end_ns: int) -> tuple[TelemetrySample, ...]:
        """Telemetry that encloses `start_ns`..`end_ns`: one sample more on either side where the session has one."""
        samples = self.telemetry_of_session(start_ns)
        return tuple(samples[at] for at in spacing.around(self.moments_of_session(start_ns), start_ns, end_ns))

    def clip(self, path: str) -> Clip:
        """A stored utterance. Raises `BundleError` where it is no exact 24 kHz mono 16-bit WAV."""
        if path not in self._clips:
            self._clips[path] = parse_wav(paths.locate(self.root, path).read_bytes(), path)
        return self._clips[path]

    def _numbered(self, name: str) -> tuple[dict[str, Any], ...]:
        found = [path for path in self.walked.files if re.fullmatch(rf"records/{name}-\d\d\.json", path)]
        documents = {path: strictjson.load(paths.locate(self.root, path), path) for path in found}
        for path, document in documents.items():
            schema.validate(name, document, path)
        return tuple(documents[path] for path in sorted(documents))

    def _rows(self, path: str, name: str, read: Callable[[dict[str, Any]], _Row]) -> tuple[_Row, ...]:
        lines = strictjson.loads_lines(paths.locate(self.root, path).read_bytes(), path)
        if not lines:
            raise BundleError(f"{path}: holds no line; a file of raw records has at least one")
        for number, line in enumerate(lines, start=1):
            schema.validate(name, line, f"{path}:{number}")
        return tuple(read(line) for line in lines)
