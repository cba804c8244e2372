"""What a run writes once and every later session must find again: inputs, identity, licences, machine, subject."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from qualification import strictjson
from qualification.bundle import BundleWriter
from qualification.evidence_view import EvidenceView
from qualification.resume import refusal
from qualification.sessions import changed, same_subject, session_path


class Keeping:
    """Writes into a bundle, or compares with what an earlier session wrote.

    Raises:
        ResumeRefused: from every method, where something is not what it was; each difference is named.
    """

    def __init__(self, bundle: BundleWriter) -> None:
        self._bundle = bundle

    def document(self, path: str, document: Mapping[str, Any]) -> None:
        """A document of the run."""
        place = self._bundle.root / path
        if not place.exists():
            self._bundle.document(path, document)
            return
        found = list(changed(strictjson.load(place), document))
        if found:
            raise refusal(self._bundle.root, [f"{path}: {item}" for item in found[:5]])

    def session(self, document: Mapping[str, Any]) -> None:
        """The record of a session, whose subject must be that of the first."""
        for first in EvidenceView(self._bundle.root).sessions[:1]:
            found = list(changed(same_subject(first), same_subject(document), "subject"))
            if found:
                raise refusal(self._bundle.root, found)
        self._bundle.document(session_path(document["number"]), document)
