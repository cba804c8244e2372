"""The command `qualify`: one run, the verification of its bundle, one table and one verdict.

Apart from the command line itself, because it needs what a verifier's environment does without: a client, a sampler,
a screen.
"""

from __future__ import annotations

import json

from qualification import paths, signing
from qualification.drawing import report_program
from qualification.errors import QualificationError
from qualification.evidence_view import EvidenceView
from qualification.gates.table import GATES
from qualification.inputs import RESULTS, SUMMARY, Inputs, Options, beside, prepare
from qualification.progress import Screen, console_for
from qualification.report import junit, markdown
from qualification.run import Qualified, Run
from qualification.strictjson import write_once
from qualification.verify.report import Verification
from qualification.verify.trust import Trust
from qualification.verify.verifier import verify


def qualify(options: Options, *, as_json: bool) -> int:
    """Qualify a subject, sum the bundle up beside it, verify it, say what it amounts to, and return the exit status.

    Raises:
        QualificationError: the run could not be finished; what was gathered is kept and said where.
    """
    screen, draw = Screen(), report_program()
    inputs = prepare(options)
    screen.step("evidence", str(inputs.out))
    try:
        sealed = Run(inputs, screen, report=draw).qualify()
    except (QualificationError, KeyboardInterrupt):
        screen.step("kept", f"{inputs.out}: what was gathered so far, unsealed; go on with --resume {inputs.out}")
        raise
    _write_beside(sealed)
    checked = verify(sealed.root, _own_trust(inputs), GATES, draw)
    _tell(sealed, checked, screen, as_json=as_json)
    return checked.exit_code


def _write_beside(sealed: Qualified) -> None:
    """Summary and test results for a job page, beside the bundle: they are no evidence and are not sealed."""
    evidence = EvidenceView(sealed.root)
    for ending, render in ((SUMMARY, markdown.render), (RESULTS, junit.render)):
        write_once(beside(sealed.root, ending), render(evidence).encode())


def _own_trust(inputs: Inputs) -> Trust:
    """Right after a run the inputs in force are those that the caller chose."""
    keys: tuple[signing.TrustedKey, ...] = ()
    if inputs.key is not None:
        public = inputs.key.public_key()
        keys = (signing.TrustedKey(keyid=signing.keyid(public), key=public),)
    return Trust(policy=inputs.policy.document, pins=inputs.pins.document, keys=keys)


def _tell(sealed: Qualified, checked: Verification, screen: Screen, *, as_json: bool) -> None:
    shown = screen if as_json else Screen(console_for(stderr=False))
    shown.results(sealed.results)
    place = sealed.root / paths.REPORT
    shown.verdict(sealed.verdict, f"Report: {place if place.exists() else sealed.root}")
    for line in () if not checked.refused else checked.lines():
        shown.console.print(line, markup=False)
    if not checked.refused:
        shown.console.print("Verified offline: the bundle is sound.", markup=False)
    if as_json:
        answer = {"bundle": str(sealed.root), "report": str(place), **checked.to_json()}
        print(json.dumps(answer, sort_keys=True, ensure_ascii=False))
