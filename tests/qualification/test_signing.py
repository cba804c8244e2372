"""Keys and envelopes, and a second implementation that reads them."""

from __future__ import annotations

import base64
import stat
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)
from securesystemslib.dsse import Envelope
from securesystemslib.exceptions import VerificationError
from securesystemslib.signer import SSlibKey

from qualification import paths, signing, strictjson
from qualification.errors import SigningError
from qualification.tamper.good import Good


def _keys() -> tuple[ed25519.Ed25519PrivateKey, signing.TrustedKey]:
    pair = signing.generate()
    return signing.private_key(pair.private_pem, "k"), signing.trusted_key(pair.public_pem, "k.pub")


def test_key_files(tmp_path: Path) -> None:
    private, public = tmp_path / "k", tmp_path / "k.pub"
    keyid = signing.write_pair(private, public)
    assert stat.S_IMODE(private.stat().st_mode) == 0o600
    assert signing.load_public(public).keyid == keyid == signing.keyid(signing.load_private(private).public_key())
    with pytest.raises(SigningError, match="never overwritten"):
        signing.write_pair(private, tmp_path / "other.pub")
    with pytest.raises(SigningError, match="choose a directory"):
        signing.write_pair(tmp_path / "none" / "k", tmp_path / "none" / "k.pub")
    with pytest.raises(SigningError, match="readable key file"):
        signing.load_public(tmp_path / "absent")


def test_other_keys_are_refused(tmp_path: Path) -> None:
    curve = ec.generate_private_key(ec.SECP256R1())
    pem = curve.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    with pytest.raises(SigningError, match="not an Ed25519 key"):
        signing.private_key(pem, "k")
    public = curve.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    with pytest.raises(SigningError, match="not an Ed25519 key"):
        signing.trusted_key(public, "k.pub")
    locked = ed25519.Ed25519PrivateKey.generate().private_bytes(
        Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"secret")
    )
    with pytest.raises(SigningError, match="no unencrypted private key"):
        signing.private_key(locked, "k")
    with pytest.raises(SigningError, match="no public key"):
        signing.trusted_key(b"rubbish", "k.pub")


def test_only_the_signer_is_named() -> None:
    key, trusted = _keys()
    _, other = _keys()
    envelope = signing.sign(b"payload", key)
    assert signing.signers(envelope, [other, trusted]) == (trusted.keyid,)
    assert signing.signers(envelope, [other]) == ()
    assert signing.signers(envelope, []) == ()


@pytest.mark.parametrize("field", ["payload", "payloadType"])
def test_payload_and_type_are_both_signed(field: str) -> None:
    key, trusted = _keys()
    envelope = signing.sign(b"payload", key)
    changed = {"payload": base64.b64encode(b"Payload").decode(), "payloadType": "application/json"}
    assert signing.signers({**envelope, field: changed[field]}, [trusted]) == ()


def test_the_key_id_in_the_envelope_is_not_believed() -> None:
    key, trusted = _keys()
    _, other = _keys()
    envelope = signing.sign(b"payload", key)
    envelope["signatures"][0]["keyid"] = other.keyid
    assert signing.signers(envelope, [trusted, other]) == (trusted.keyid,)


@pytest.mark.parametrize("text", ["AAA", "A===", "AA==A", "AB==", "é"])
def test_base64_is_strict(text: str) -> None:
    key, trusted = _keys()
    envelope = signing.sign(b"payload", key)
    with pytest.raises((SigningError, ValueError)):
        signing.signers({**envelope, "payload": text}, [trusted])


def test_the_encoding_is_that_of_the_dsse_specification() -> None:
    assert signing.pae("http://example.com/HelloWorld", b"hello world") == (
        b"DSSEv1 29 http://example.com/HelloWorld 11 hello world"
    )


def test_a_second_implementation_verifies_a_bundle(good_bundle: Good) -> None:
    document = strictjson.load(good_bundle.root / paths.STATEMENT)
    trusted = good_bundle.trust.keys[0]
    keyval = {"public": trusted.key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()}
    envelope = Envelope.from_dict(document)
    good = SSlibKey(trusted.keyid, "ed25519", "ed25519", {**keyval, "public": trusted.key.public_bytes_raw().hex()})
    assert envelope.verify([good], threshold=1) == {trusted.keyid: good}
    assert envelope.pae() == signing.pae(signing.PAYLOAD_TYPE, signing.payload_of(document))
    envelope.payload += b" "
    with pytest.raises(VerificationError):
        envelope.verify([good], threshold=1)


def test_an_envelope_of_the_second_implementation_verifies_here() -> None:
    from securesystemslib.signer import CryptoSigner

    signer = CryptoSigner.generate_ed25519()
    envelope = Envelope(b"payload", signing.PAYLOAD_TYPE, {})
    envelope.sign(signer)
    document = envelope.to_dict()
    raw = bytes.fromhex(signer.public_key.keyval["public"])
    key = ed25519.Ed25519PublicKey.from_public_bytes(raw)
    trusted = signing.TrustedKey(keyid=signing.keyid(key), key=key)
    assert signing.signers(document, [trusted]) == (trusted.keyid,)
