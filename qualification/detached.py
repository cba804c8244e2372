"""Signing with somebody else's tool: what there is to sign, and how an Ed25519 signature made elsewhere is attached.

The statement is rebuilt from the files on each side, by the signer and by whoever checks, and never handed over; so any
tool that signs a file will do, and what it signs is tied to every file of the bundle. A bundle whose files are not those
of its manifest has no statement.
"""

from __future__ import annotations

import base64
import binascii
from pathlib import Path

from qualification import paths, signing, statement, strictjson
from qualification.errors import BundleError, SigningError
from qualification.evidence_view import EvidenceView
from qualification.signing import TrustedKey
from qualification.verify import structure


def statement_bytes(root: Path) -> bytes:
    """The in-toto Statement over the bundle at `root`, exactly as an envelope carries it.

    Raises:
        BundleError: where the files are not exactly the sealed ones.
    """
    evidence = EvidenceView(root)
    faults = [finding for finding in structure.check(evidence) if finding.refuses]
    if faults:
        first = faults[0]
        raise BundleError(f"{first.file}: {first.detail}; there is nothing to sign before the bundle is whole")
    return strictjson.dumps(statement.build(evidence))


def encoded(root: Path) -> bytes:
    """DSSE's pre-authentication encoding of the statement: the bytes that an Ed25519 signature of the bundle covers."""
    return signing.pae(signing.PAYLOAD_TYPE, statement_bytes(root))


def attach(root: Path, signature: bytes, key: TrustedKey) -> Path:
    """Write the statement with a signature that another tool made over `encoded(root)`, 64 bytes or their base64.

    Raises:
        SigningError: where it is not the signature of `key` over this bundle; nothing is written then.
        BundleError: where the bundle has a statement already, or is not whole.
    """
    envelope = signing.envelope(statement_bytes(root), _raw(signature), key.keyid)
    if not signing.signers(envelope, [key]):
        raise SigningError("not a signature of that key over this bundle; sign what `statement --pae` prints")
    strictjson.write(root / paths.STATEMENT, envelope)
    return root / paths.STATEMENT


def _raw(signature: bytes) -> bytes:
    if len(signature) == signing.SIGNATURE_BYTES:
        return signature
    try:
        return base64.b64decode(signature.strip(), validate=True)
    except binascii.Error as error:
        raise SigningError("a signature is 64 bytes or their base64; give the file as the tool wrote it") from error
