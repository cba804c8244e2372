"""The program that draws `report.html`, where it is installed.

Templates come with the extra `harness`; the verifier's environment does without, and then says that the report was not
drawn again.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib.util import find_spec

from qualification.evidence_view import EvidenceView

Report = Callable[[EvidenceView], str]


def report_program(*, added: bool = False) -> Report | None:
    """Evidence -> HTML text, or None where the template engine is not installed. `added`: with the audio reviews that were
    added after sealing, which the sealed report cannot have."""
    if find_spec("jinja2") is None:
        return None
    from qualification.report.html import render

    return partial(render, added=added)
