"""Pushing keeps the bytes; following digests believes only bytes; a registry that refuses is named."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from qualification.container import oci, publish
from qualification.container.digests import follow
from qualification.container.faults import ContainerFault, FaultCode
from qualification.container.layer import measured
from qualification.container.reference import ImageReference
from qualification.container.registry import free_port, loopback_registry
from qualification.container.registry_client import RegistryClient
from tests.qualification.container.fake_registry import fake_registry
from tests.qualification.container.tars import write_tar


@pytest.fixture
def image(tmp_path: Path) -> oci.Image:
    layer = measured(write_tar(tmp_path / "layer.tar", {"a": b"x" * 3_000_000}))
    source = {"architecture": "amd64", "os": "linux", "config": {}}
    return oci.assemble(layers=(layer,), source=source, annotations={"n": "v"}, epoch=5, steps=("base",))


def _contents(image: oci.Image) -> dict[str, bytes]:
    return {blob.digest: blob.content for blob in (image.index, image.manifest, image.config)}


def test_what_is_pushed_comes_back_by_every_digest(image: oci.Image) -> None:
    with fake_registry() as address:
        reference = publish.publish(image, address, "x/y")
        with RegistryClient(address, "x/y") as client:
            chain = follow(reference, client, "x86_64")
            direct = follow(ImageReference(name=reference.name, digest=image.manifest.digest), client, "x86_64")
    assert (chain.index, chain.platform, chain.config) == (
        image.index.digest,
        image.manifest.digest,
        image.config.digest,
    )
    assert (direct.index, direct.platform) == (None, image.manifest.digest)
    assert chain.annotations == {"n": "v"}


@pytest.mark.parametrize("which", ["index", "manifest"])
def test_other_bytes_under_a_digest_are_refused(image: oci.Image, which: str) -> None:
    contents = _contents(image)
    contents[getattr(image, which).digest] += b" "
    with (
        fake_registry(contents) as address,
        RegistryClient(address, "x") as client,
        pytest.raises(ContainerFault) as caught,
    ):
        follow(ImageReference(name="x", digest=image.index.digest), client, "x86_64")
    assert caught.value.code is FaultCode.DIGEST_DIFFERS


def test_an_image_for_another_machine_is_refused(image: oci.Image) -> None:
    with (
        fake_registry(_contents(image)) as address,
        RegistryClient(address, "x") as client,
        pytest.raises(ContainerFault, match="linux/arm64"),
    ):
        follow(ImageReference(name="x", digest=image.index.digest), client, "aarch64")


def test_something_that_is_no_image_is_refused() -> None:
    blob = oci.Blob(media_type=oci.MANIFEST_TYPE, content=json.dumps({"schemaVersion": 2}).encode())
    with (
        fake_registry({blob.digest: blob.content}) as address,
        RegistryClient(address, "x") as client,
        pytest.raises(ContainerFault) as caught,
    ):
        follow(ImageReference(name="x", digest=blob.digest), client, "x86_64")
    assert caught.value.code is FaultCode.IMAGE_MALFORMED


@pytest.mark.parametrize("status", [401, 403, 500])
def test_a_registry_that_refuses_is_named(image: oci.Image, status: int) -> None:
    with fake_registry(refuse=status) as address, pytest.raises(ContainerFault, match=str(status)) as caught:
        publish.publish(image, address, "x")
    assert caught.value.code is FaultCode.REGISTRY_REFUSES


def test_a_registry_that_is_not_there_is_named(image: oci.Image) -> None:
    with pytest.raises(ContainerFault, match="did not answer") as caught:
        publish.publish(image, f"127.0.0.1:{free_port()}", "x")
    assert caught.value.code is FaultCode.REGISTRY_REFUSES


def test_without_the_program_there_is_no_registry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(ContainerFault, match="not installed") as caught, loopback_registry():
        pass
    assert caught.value.code is FaultCode.REGISTRY_MISSING


def test_a_registry_that_ends_at_once_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "docker-registry"
    program.write_text("#!/bin/sh\nexit 3\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ContainerFault, match="status 3") as caught, loopback_registry():
        pass
    assert caught.value.code is FaultCode.REGISTRY_REFUSES
