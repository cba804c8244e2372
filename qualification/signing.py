"""Ed25519 keys and the DSSE envelope.

The signed bytes are DSSE's pre-authentication encoding, so payload and type are bound together. A verifier is given its
keys by its caller; no key is ever read from a bundle. A key's id is the SHA-256 of its SubjectPublicKeyInfo.
"""

from __future__ import annotations

import base64
import binascii
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
    load_pem_public_key,
)

from qualification.digest import sha256_bytes
from qualification.errors import SigningError

PAYLOAD_TYPE: Final = "application/vnd.in-toto+json"
SIGNATURE_BYTES: Final = 64


@dataclass(frozen=True, kw_only=True)
class KeyPair:
    """A new key pair in PEM: PKCS#8 without encryption, and SubjectPublicKeyInfo."""

    private_pem: bytes
    public_pem: bytes


@dataclass(frozen=True, kw_only=True)
class TrustedKey:
    """A public key that the caller trusts."""

    keyid: str
    key: Ed25519PublicKey


def generate() -> KeyPair:
    """A new key pair from the operating system's randomness."""
    key = Ed25519PrivateKey.generate()
    return KeyPair(
        private_pem=key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()),
        public_pem=key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo),
    )


def write_pair(private: Path, public: Path) -> str:
    """Create both key files (the private one readable by its owner only) and return the key id.

    Raises:
        SigningError: where one of them exists already or cannot be created.
    """
    if private.exists() or public.exists():
        raise SigningError(f"{private} or {public} exists already; keys are never overwritten, choose another name")
    pair = generate()
    try:
        descriptor = os.open(private, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(pair.private_pem)
        with public.open("xb") as stream:
            stream.write(pair.public_pem)
    except OSError as error:
        raise SigningError(f"{error.filename}: {error.strerror}; choose a directory that can be written") from error
    return trusted_key(pair.public_pem, public.name).keyid


def load_private(path: Path) -> Ed25519PrivateKey:
    """The private key in a PEM file. Raises `SigningError` for anything but an unencrypted Ed25519 key."""
    return private_key(_read(path), str(path))


def private_key(pem: bytes, name: str) -> Ed25519PrivateKey:
    """The private key in `pem`; `name` opens the error message."""
    try:
        key = load_pem_private_key(pem, password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise SigningError(f"{name}: no unencrypted private key in PEM; make one with keygen") from error
    if not isinstance(key, Ed25519PrivateKey):
        raise SigningError(f"{name}: not an Ed25519 key; make one with keygen")
    return key


def load_public(path: Path) -> TrustedKey:
    """The public key in a PEM file. Raises `SigningError` for anything but an Ed25519 key."""
    return trusted_key(_read(path), str(path))


def trusted_key(pem: bytes, name: str) -> TrustedKey:
    """The public key in `pem`; `name` opens the error message."""
    try:
        key = load_pem_public_key(pem)
    except (ValueError, UnsupportedAlgorithm) as error:
        raise SigningError(f"{name}: no public key in PEM; give the .pub file that keygen wrote") from error
    if not isinstance(key, Ed25519PublicKey):
        raise SigningError(f"{name}: not an Ed25519 key; give the .pub file that keygen wrote")
    return TrustedKey(keyid=keyid(key), key=key)


def keyid(key: Ed25519PublicKey) -> str:
    """SHA-256 of the key's SubjectPublicKeyInfo."""
    return sha256_bytes(key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo))


def pae(payload_type: str, payload: bytes) -> bytes:
    """DSSE's pre-authentication encoding, version 1."""
    kind = payload_type.encode()
    return b"DSSEv1 %d %b %d %b" % (len(kind), kind, len(payload), payload)


def sign(payload: bytes, key: Ed25519PrivateKey) -> dict[str, Any]:
    """The envelope document over `payload`."""
    return envelope(payload, key.sign(pae(PAYLOAD_TYPE, payload)), keyid(key.public_key()))


def envelope(payload: bytes, signature: bytes, signer: str) -> dict[str, Any]:
    """The envelope document with a signature that was made already; whether it is good is not checked here."""
    return {
        "payloadType": PAYLOAD_TYPE,
        "payload": base64.b64encode(payload).decode(),
        "signatures": [{"keyid": signer, "sig": base64.b64encode(signature).decode()}],
    }


def payload_of(envelope: Mapping[str, Any]) -> bytes:
    """The signed bytes. Raises `SigningError` where they are not canonical base64."""
    return _decode(envelope["payload"], "payload")


def signers(envelope: Mapping[str, Any], keys: Iterable[TrustedKey]) -> tuple[str, ...]:
    """Ids of those `keys` whose signature over the payload is good. The envelope's own key ids are not believed.

    Raises:
        SigningError: payload or a signature is not base64.
    """
    message = pae(envelope["payloadType"], payload_of(envelope))
    signatures = [_decode(item["sig"], "signature") for item in envelope["signatures"]]
    return tuple(key.keyid for key in keys if any(_is_good(key, signature, message) for signature in signatures))


def _is_good(key: TrustedKey, signature: bytes, message: bytes) -> bool:
    try:
        key.key.verify(signature, message)
    except InvalidSignature:
        return False
    return True


def _decode(text: str, what: str) -> bytes:
    try:
        data = base64.b64decode(text, validate=True)
    except binascii.Error as error:
        raise SigningError(f"envelope: {what} is not base64; sign the bundle again") from error
    if base64.b64encode(data).decode() != text:
        raise SigningError(f"envelope: {what} is not canonical base64; sign the bundle again")
    return data


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise SigningError(f"{path}: {error.strerror}; give a readable key file") from error
