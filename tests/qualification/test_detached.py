"""Signing with somebody else's tool: OpenSSL and securesystemslib with a key, sigstore without one."""

from __future__ import annotations

import base64
import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from securesystemslib.dsse import Envelope
from securesystemslib.signer import CryptoSigner, SSlibKey

from qualification import cli, detached, paths, signing, strictjson
from qualification.errors import BundleError, SigningError
from qualification.tamper.bench import Reseal, copy
from qualification.tamper.good import Good
from tests.qualification import sigstore_instance

WORKFLOW = "https://github.com/example/voices/.github/workflows/cpu.yml@refs/heads/main"


@pytest.fixture
def unsigned(good_bundle: Good, tmp_path: Path) -> Path:
    """The good bundle before anybody signed it."""
    root = copy(good_bundle, tmp_path / "bundle").root
    (root / paths.STATEMENT).unlink()
    return root


def _run(*command: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=60, check=False)


def _exported(root: Path, out: Path, *options: str) -> bytes:
    assert cli.main(["statement", str(root), "--out", str(out), *options]) == 0
    return out.read_bytes()


def test_what_is_exported_is_what_an_envelope_carries_and_signs(
    good_bundle: Good, unsigned: Path, tmp_path: Path
) -> None:
    envelope = Envelope.from_dict(strictjson.load(good_bundle.root / paths.STATEMENT))
    for root in (good_bundle.root, unsigned):
        assert _exported(root, tmp_path / f"{root.name}.json") == envelope.payload
        assert _exported(root, tmp_path / f"{root.name}.pae", "--pae") == envelope.pae()


def test_the_export_goes_to_standard_output_as_bytes(unsigned: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    assert cli.main(["statement", str(unsigned)]) == 0
    assert capfdbinary.readouterr().out == detached.statement_bytes(unsigned)


def test_a_bundle_that_is_not_whole_has_no_statement(unsigned: Path, tmp_path: Path) -> None:
    utterance = next((unsigned / "audio").iterdir())
    data = utterance.read_bytes()
    utterance.unlink()  # the copy shares its files
    utterance.write_bytes(data[:-2] + b"\x00\x00")
    with pytest.raises(BundleError, match=r"audio/.*not what was sealed; there is nothing to sign"):
        detached.statement_bytes(unsigned)
    assert cli.main(["statement", str(unsigned), "--out", str(tmp_path / "s.json")]) == BundleError.exit_code
    assert not (tmp_path / "s.json").exists()


@pytest.fixture
def openssl_key(tmp_path: Path) -> Path:
    key = tmp_path / "k.pem"
    assert _run("openssl", "genpkey", "-algorithm", "ed25519", "-out", key).returncode == 0
    assert _run("openssl", "pkey", "-in", key, "-pubout", "-out", tmp_path / "k.pub").returncode == 0
    return key


@pytest.mark.parametrize("text", [False, True], ids=["bytes", "base64"])
def test_openssl_signs_and_the_verifier_takes_it(
    unsigned: Path, good_bundle: Good, openssl_key: Path, tmp_path: Path, text: bool
) -> None:
    message, signature, public = tmp_path / "m.pae", tmp_path / "m.sig", tmp_path / "k.pub"
    _exported(unsigned, message, "--pae")
    signed = _run("openssl", "pkeyutl", "-sign", "-rawin", "-inkey", openssl_key, "-in", message, "-out", signature)
    assert signed.returncode == 0, signed.stderr
    if text:
        signature.write_bytes(base64.b64encode(signature.read_bytes()) + b"\n")
    assert cli.main(["attach-signature", str(unsigned), str(signature), "--key", str(public)]) == 0
    trust = [f"--{name}={good_bundle.root / name}.json" for name in ("policy", "pins")]
    assert cli.main(["verify", str(unsigned), "--key", str(public), *trust]) == 0
    trusted = signing.load_public(public)
    second = SSlibKey(trusted.keyid, "ed25519", "ed25519", {"public": trusted.key.public_bytes_raw().hex()})
    envelope = Envelope.from_dict(strictjson.load(unsigned / paths.STATEMENT))
    assert envelope.verify([second], threshold=1) == {trusted.keyid: second}
    with pytest.raises(BundleError, match="written once"):
        detached.attach(
            unsigned, base64.b64decode(strictjson.load(unsigned / paths.STATEMENT)["signatures"][0]["sig"]), trusted
        )


def test_a_signature_of_another_key_or_of_other_bytes_is_not_attached(unsigned: Path, good_bundle: Good) -> None:
    trusted = good_bundle.trust.keys[0]
    over_statement = good_bundle.key.sign(detached.statement_bytes(unsigned))  # not over its encoding
    of_another = good_bundle.reviewer.sign(detached.encoded(unsigned))
    for signature in (over_statement, of_another, bytes(64), b"", b"AAAA"):
        with pytest.raises(SigningError, match="not a signature of that key over this bundle"):
            detached.attach(unsigned, signature, trusted)
    with pytest.raises(SigningError, match="64 bytes or their base64"):
        detached.attach(unsigned, b"rubbish!", trusted)
    assert not (unsigned / paths.STATEMENT).exists()


def test_securesystemslib_signs_and_its_signature_is_attached(unsigned: Path, tmp_path: Path) -> None:
    signer = CryptoSigner.generate_ed25519()
    envelope = Envelope(_exported(unsigned, tmp_path / "s.json"), signing.PAYLOAD_TYPE, {})
    signature = bytes.fromhex(envelope.sign(signer).signature)
    public = tmp_path / "s.pub"
    public.write_bytes(signer._private_key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))
    detached.attach(unsigned, signature, signing.load_public(public))
    assert base64.b64decode(strictjson.load(unsigned / paths.STATEMENT)["payload"]) == envelope.payload


def test_a_tool_with_keys_of_another_kind_signs_the_statement_as_a_file(unsigned: Path, tmp_path: Path) -> None:
    key, public, signature = tmp_path / "ec.pem", tmp_path / "ec.pub", tmp_path / "s.sig"
    _run("openssl", "genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-out", key)
    _run("openssl", "pkey", "-in", key, "-pubout", "-out", public)
    _exported(unsigned, tmp_path / "signed.json")
    _run("openssl", "dgst", "-sha256", "-sign", key, "-out", signature, tmp_path / "signed.json")
    check = ("openssl", "dgst", "-sha256", "-verify", public, "-signature", signature)
    _exported(unsigned, tmp_path / "again.json")  # the auditor's own
    assert _run(*check, tmp_path / "again.json").returncode == 0
    changed = json.loads((tmp_path / "again.json").read_bytes())
    changed["predicate"]["verdict"] = "not_qualified"
    (tmp_path / "changed.json").write_bytes(strictjson.dumps(changed))
    assert _run(*check, tmp_path / "changed.json").returncode == 1


@pytest.fixture(scope="module")
def instance() -> Iterator[sigstore_instance.Instance]:
    with sigstore_instance.serving() as instance:
        yield instance


@pytest.fixture
def keyless(instance: sigstore_instance.Instance, unsigned: Path, tmp_path: Path) -> Path:
    """A bundle whose statement a job signed without a key; the Sigstore bundle lies in `tmp_path`."""
    configuration = tmp_path / "trust.json"
    configuration.write_text(json.dumps(instance.trust_configuration()))
    _exported(unsigned, tmp_path / "statement.json")
    sigstore = (sys.executable, "-m", "sigstore", "--trust-config", configuration, "sign", "--bundle")
    token = sigstore_instance.token(WORKFLOW)
    signed = _run(*sigstore, tmp_path / "keyless.json", "--identity-token", token, tmp_path / "statement.json")
    assert signed.returncode == 0, signed.stderr
    return unsigned


def _verified(tmp_path: Path, statement: Path, identity: str = WORKFLOW) -> int:
    options = ("--offline", "--bundle", tmp_path / "keyless.json", "--cert-oidc-issuer", sigstore_instance.ISSUER)
    sigstore = (sys.executable, "-m", "sigstore", "--trust-config", tmp_path / "trust.json", "verify", "identity")
    return _run(*sigstore, *options, "--cert-identity", identity, statement).returncode


def test_signed_without_a_key_and_checked_against_the_auditors_own_statement(keyless: Path, tmp_path: Path) -> None:
    moved = Path(shutil.move(keyless, tmp_path / "received"))
    _exported(moved, tmp_path / "own.json")
    assert _verified(tmp_path, tmp_path / "own.json") == 0
    assert _verified(tmp_path, tmp_path / "own.json", WORKFLOW.replace("main", "fork")) == 1


def test_a_bundle_that_changed_after_keyless_signing_fails(keyless: Path, good_bundle: Good, tmp_path: Path) -> None:
    changed = copy(good_bundle, tmp_path / "changed")
    changed.edit("environment.json", lambda document: document["machine"].update(cpu_model="Another CPU"))
    changed.seal(Reseal.EVERYTHING)
    _exported(changed.root, tmp_path / "changed.json")
    assert _verified(tmp_path, tmp_path / "changed.json") == 1
    assert not list(keyless.glob("*sigstore*")), "nothing is added to the bundle"
