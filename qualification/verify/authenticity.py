"""Second question: did a key that the caller trusts sign all of it?

1. The statement is there; without one the bundle is unsigned, which a policy or a given key turns into a refusal.
2. The envelope is strict, of its schema, and its payload canonical base64.
3. At least one given key has signed it; the envelope's key ids are not believed, no key is read from the bundle.
4. The payload is exactly the statement that the files amount to: every file, the manifest, run, tier, verdict, policy.
"""

from __future__ import annotations

from collections.abc import Iterator

from qualification import paths, schema, signing, statement, strictjson
from qualification.errors import QualificationError
from qualification.evidence_view import EvidenceView
from qualification.policy import parse_policy
from qualification.verify.findings import Finding
from qualification.verify.trust import Trust


def check(evidence: EvidenceView, trust: Trust) -> Iterator[Finding]:
    """Findings of the four steps."""
    if not evidence.exists(paths.STATEMENT):  # 1
        yield _unsigned(evidence, trust)
        return
    try:
        envelope = strictjson.load(paths.locate(evidence.root, paths.STATEMENT), paths.STATEMENT)  # 2
        schema.validate("envelope", envelope, paths.STATEMENT)
        payload = signing.payload_of(envelope)
        signers = signing.signers(envelope, trust.keys)
    except QualificationError as error:
        yield Finding(code="signature.malformed", file=paths.STATEMENT, detail=str(error))
        return
    if not trust.keys:  # 3
        detail = "signed, but no public key was given: nothing is said of who sealed it"
        yield Finding(
            code="signature.unchecked", file=paths.STATEMENT, detail=detail, refuses=_required(evidence, trust)
        )
    elif not signers:
        yield Finding(code="signature.untrusted", file=paths.STATEMENT, detail="no given key has signed this bundle")
    if payload != strictjson.dumps(statement.build(evidence)):  # 4
        detail = "what was signed is not what lies here; the bundle was changed after signing"
        yield Finding(code="statement.differs", file=paths.STATEMENT, detail=detail)


def _unsigned(evidence: EvidenceView, trust: Trust) -> Finding:
    if trust.keys or _required(evidence, trust):
        detail = "unsigned, though a key was given or the policy asks for a signature"
        return Finding(code="signature.missing", file=paths.STATEMENT, detail=detail)
    detail = "unsigned: whoever can write these files could have made them"
    return Finding(code="signature.none", file=paths.STATEMENT, detail=detail, refuses=False)


def _required(evidence: EvidenceView, trust: Trust) -> bool:
    return parse_policy(trust.policy).rules_for(evidence.run["tier"]).signature_required
