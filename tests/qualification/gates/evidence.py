"""Evidence for gate tests: the good bundle of the tampers, copied, with one thing changed."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from qualification import paths
from qualification.clip import encode_wav
from qualification.evaluation import Gate
from qualification.evidence_view import EvidenceView
from qualification.gates.table import GATES
from qualification.policy import Policy, parse_policy
from qualification.results import GateResult
from qualification.tamper import good

Change = Callable[[dict[str, Any]], object]


@cache
def original() -> Path:
    """The good bundle, built once a test process; never changed."""
    root = Path(mkdtemp(prefix="assay-good-")) / "bundle"
    good.build(root)
    return root


class Changed:
    """A copy of the good bundle that a test may change; `answer` evaluates one gate over it."""

    def __init__(self, tmp_path: Path) -> None:
        self.root = tmp_path / "bundle"
        shutil.copytree(original(), self.root)

    def document(self, path: str, change: Change) -> Changed:
        """Change a JSON document."""
        document = json.loads((self.root / path).read_bytes())
        change(document)
        (self.root / path).write_text(json.dumps(document))
        return self

    def records(self, path: str, change: Change, only: Callable[[dict[str, Any]], bool] = lambda _: True) -> Changed:
        """Change those raw records of a file for which `only` holds."""
        lines = [json.loads(line) for line in (self.root / path).read_bytes().splitlines()]
        for line in lines:
            if only(line):
                change(line)
        (self.root / path).write_text("".join(f"{json.dumps(line)}\n" for line in lines))
        return self

    def without(self, path: str, only: Callable[[dict[str, Any]], bool]) -> Changed:
        """Remove the raw records for which `only` holds."""
        lines = [json.loads(line) for line in (self.root / path).read_bytes().splitlines()]
        (self.root / path).write_text("".join(f"{json.dumps(line)}\n" for line in lines if not only(line)))
        return self

    def audio(self, path: str, pcm: bytes) -> Changed:
        """Replace a stored utterance."""
        (self.root / path).write_bytes(encode_wav(pcm))
        return self

    @property
    def view(self) -> EvidenceView:
        return EvidenceView(self.root)

    @property
    def policy(self) -> Policy:
        return parse_policy(self.view.document(paths.POLICY))

    def answer(self, gate: str | Gate) -> GateResult:
        """What a gate says of the copy as it is now."""
        chosen = GATES[gate] if isinstance(gate, str) else gate
        return chosen.evaluate(self.view, self.policy)


def fail(record: dict[str, Any], outcome: str = "transport_error", code: str = "connection_lost") -> None:
    """Turn a success into a failure without audio."""
    record |= {
        "outcome": outcome,
        "error_code": code,
        "error_detail": "it broke",
        "packets": [],
        "samples": 0,
        "pcm_sha256": None,
        "finish_reason": None,
        "echoed_seed": None,
        "audio": None,
        "server_metrics": None,
    }
