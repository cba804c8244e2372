"""A Sigstore instance on loopback for tests: a certificate authority and a transparency log of one entry.

It lets the ordinary `sigstore` command sign without a key and verify, with no other network. Like Fulcio it believes the
identity in the token, but it checks no token: it stands in for the services, not for their trustworthiness.
"""

from __future__ import annotations

import base64
import hashlib
import json
import struct
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID, ObjectIdentifier

ISSUER: Final = "https://token.actions.githubusercontent.com"
_ISSUER_OLD: Final = ObjectIdentifier("1.3.6.1.4.1.57264.1.1")
_ISSUER_NEW: Final = ObjectIdentifier("1.3.6.1.4.1.57264.1.8")
_SCT_LIST: Final = ObjectIdentifier("1.3.6.1.4.1.11129.2.4.2")
_P256: Final = "PKIX_ECDSA_P256_SHA_256"
_SIGNED: Final = ec.ECDSA(SHA256())


def token(identity: str) -> str:
    """What a hosted runner would hand to a job: claims that name the workflow, here unsigned."""
    now = int(time.time())
    claims = {"iss": ISSUER, "sub": identity, "aud": "sigstore", "iat": now, "exp": now + 600}
    parts = ({"alg": "none", "typ": "JWT"}, claims)
    return ".".join(base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=").decode() for part in parts) + "."


class Instance:
    """Keys of the authority, of its certificate log and of the transparency log."""

    def __init__(self) -> None:
        self.authority, self.certificates, self.log = (ec.generate_private_key(ec.SECP256R1()) for _ in range(3))
        self.root = self._root()
        self.url = ""

    def trust_configuration(self) -> dict[str, Any]:
        """The document for `sigstore --trust-config`."""
        valid = {"start": "2020-01-01T00:00:00Z"}
        service = [{"url": self.url, "majorApiVersion": 1, "validFor": valid, "operator": "tests"}]
        authority = {
            "subject": {"organization": "tests", "commonName": "stand-in"},
            "uri": self.url,
            "certChain": {"certificates": [{"rawBytes": _text(self.root.public_bytes(Encoding.DER))}]},
            "validFor": valid,
        }
        return {
            "mediaType": "application/vnd.dev.sigstore.clienttrustconfig.v0.1+json",
            "trustedRoot": {
                "mediaType": "application/vnd.dev.sigstore.trustedroot+json;version=0.1",
                "tlogs": [self._log_of(self.log, valid)],
                "certificateAuthorities": [authority],
                "ctlogs": [self._log_of(self.certificates, valid)],
                "timestampAuthorities": [],
            },
            "signingConfig": {
                "mediaType": "application/vnd.dev.sigstore.signingconfig.v0.2+json",
                "caUrls": service,
                "oidcUrls": service,
                "rekorTlogUrls": service,
                "rekorTlogConfig": {"selector": "ANY"},
                "tsaUrls": [],
                "tsaConfig": {"selector": "ANY"},
            },
        }

    def issue(self, request: x509.CertificateSigningRequest, identity: str) -> list[str]:
        """The chain for a key whose holder showed a token of `identity`: ten minutes, logged."""
        now = datetime.now(UTC).replace(microsecond=0)
        builder = (
            x509.CertificateBuilder(subject_name=x509.Name([]), issuer_name=self.root.subject)
            .public_key(request.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(minutes=1))
            .not_valid_after(now + timedelta(minutes=10))
            .add_extension(_usage(signs_data=True), critical=True)
            .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CODE_SIGNING]), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(self.authority.public_key()), False)
            .add_extension(x509.SubjectAlternativeName([x509.UniformResourceIdentifier(identity)]), critical=True)
            .add_extension(x509.UnrecognizedExtension(_ISSUER_OLD, ISSUER.encode()), critical=False)
            .add_extension(x509.UnrecognizedExtension(_ISSUER_NEW, _der(0x0C, ISSUER.encode())), critical=False)
        )
        unlogged = builder.sign(self.authority, SHA256())
        logged = x509.UnrecognizedExtension(_SCT_LIST, _der(0x04, self._receipt(unlogged)))
        certificate = builder.add_extension(logged, critical=False).sign(self.authority, SHA256())
        return [item.public_bytes(Encoding.PEM).decode() for item in (certificate, self.root)]

    def enter(self, proposed: Mapping[str, Any]) -> dict[str, Any]:
        """The answer of the transparency log to a new entry, which is its only one."""
        body, now, log_id = _canonical(proposed), int(time.time()), _key_id(self.log)
        leaf = hashlib.sha256(b"\x00" + body).digest()
        promise = {"body": _text(body), "integratedTime": now, "logID": log_id.hex(), "logIndex": 0}
        note = f"stand-in - 1\n1\n{_text(leaf)}\n"
        mark = _text(log_id[:4] + self.log.sign(note.encode(), _SIGNED))
        proof = {"logIndex": 0, "treeSize": 1, "rootHash": leaf.hex(), "hashes": []}
        verification = {
            "signedEntryTimestamp": _text(self.log.sign(_canonical(promise), _SIGNED)),
            "inclusionProof": {**proof, "checkpoint": f"{note}\n\N{EM DASH} stand-in {mark}\n"},
        }
        return {leaf.hex(): {**promise, "verification": verification}}

    def _root(self) -> x509.Certificate:
        name = x509.Name([x509.NameAttribute(NameOID.ORGANIZATION_NAME, "stand-in for tests")])
        key = self.authority.public_key()
        return (
            x509.CertificateBuilder(subject_name=name, issuer_name=name, public_key=key, serial_number=1)
            .not_valid_before(datetime(2020, 1, 1, tzinfo=UTC))
            .not_valid_after(datetime(2100, 1, 1, tzinfo=UTC))
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(_usage(signs_data=False), critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
            .sign(self.authority, SHA256())
        )

    def _receipt(self, unlogged: x509.Certificate) -> bytes:
        """The list of one signed certificate timestamp, as RFC 6962 lays it out."""
        tbs, moment = unlogged.tbs_certificate_bytes, int(time.time() * 1_000)
        entry = _key_id(self.authority) + len(tbs).to_bytes(3, "big") + tbs
        signature = self.certificates.sign(struct.pack("!BBQH", 0, 0, moment, 1) + entry + bytes(2), _SIGNED)
        receipt = b"\x00" + _key_id(self.certificates) + struct.pack("!QHBBH", moment, 0, 4, 3, len(signature))
        receipt += signature
        return struct.pack("!HH", len(receipt) + 2, len(receipt)) + receipt

    def _log_of(self, key: ec.EllipticCurvePrivateKey, valid: Mapping[str, str]) -> dict[str, Any]:
        public = {"rawBytes": _text(_spki(key)), "keyDetails": _P256, "validFor": valid}
        return {
            "baseUrl": self.url,
            "hashAlgorithm": "SHA2_256",
            "publicKey": public,
            "logId": {"keyId": _text(_key_id(key))},
        }


@contextmanager
def serving() -> Iterator[Instance]:
    """An instance that answers on loopback."""
    instance = Instance()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            if self.path == "/api/v2/signingCert":
                chain = instance.issue(_request_of(asked), self._identity())
                self._answer({"signedCertificateEmbeddedSct": {"chain": {"certificates": chain}}})
            else:
                self._answer(instance.enter(asked))

        def _identity(self) -> str:
            claims = self.headers["Authorization"].split(".")[1]
            decoded: dict[str, str] = json.loads(base64.urlsafe_b64decode(claims + "=="))
            return decoded["sub"]

        def _answer(self, document: Mapping[str, Any]) -> None:
            data = json.dumps(document).encode()
            self.send_response(201)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: object) -> None:
            """Silent."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        instance.url = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield instance
        server.shutdown()
        thread.join()


def _request_of(asked: Mapping[str, str]) -> x509.CertificateSigningRequest:
    return x509.load_pem_x509_csr(base64.b64decode(asked["certificateSigningRequest"]))


def _usage(*, signs_data: bool) -> x509.KeyUsage:
    return x509.KeyUsage(signs_data, False, False, False, False, not signs_data, not signs_data, False, False)


def _der(tag: int, content: bytes) -> bytes:
    """One DER value; every content here is shorter than 256 bytes."""
    length = bytes([len(content)]) if len(content) < 128 else bytes([0x81, len(content)])
    return bytes([tag]) + length + content


def _canonical(document: Mapping[str, Any]) -> bytes:
    return json.dumps(document, sort_keys=True, separators=(",", ":")).encode()


def _spki(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)


def _key_id(key: ec.EllipticCurvePrivateKey) -> bytes:
    return hashlib.sha256(_spki(key)).digest()


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()
