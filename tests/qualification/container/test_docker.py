"""With a Docker engine: one stand-in image from the real Dockerfile, run for real, and every kind of bad input.

The stand-in has the structure of the shipped image (base, stages, user, health check, labels) and neither torch nor a
real model, so that a build takes a minute. `nox -s container-tests` runs these.
"""

from __future__ import annotations

import json
import shutil
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import docker
import pytest

from qualification import schema
from qualification.container import base, hardening, image, life, lock, oci, oci_store, publish
from qualification.container.build import leftovers_removed, noted
from qualification.container.docker_engine import docker_engine
from qualification.container.faults import ContainerFault, FaultCode
from qualification.container.image import ImageOrder, make_image
from qualification.container.record import ContainerRecord
from qualification.container.registry import loopback_registry
from qualification.container.subject import ContainerOrder, container_subject
from qualification.paths import data_file, schema_directory
from qualification.pinning import pin_model
from qualification.sbom.document import faults
from tests.qualification.safetensors_files import write_sound

pytestmark = pytest.mark.docker
CHECKOUT = schema_directory().parent
STANDIN = Path(__file__).with_name("standin") / "engine"
RUN = "20260101-000000-docker"


@dataclass(frozen=True, kw_only=True)
class Built:
    """The stand-in image, built twice."""

    order: ImageOrder
    report: dict[str, Any]

    @property
    def layout(self) -> Path:
        return self.order.output / image.LAYOUT


@pytest.fixture(scope="module")
def order(tmp_path_factory: pytest.TempPathFactory) -> ImageOrder:
    place = tmp_path_factory.mktemp("standin")
    write_sound(place / "model" / "model.safetensors")
    pins = Path(shutil.copy(data_file("pins.json"), place / "pins.json"))
    pin_model(
        place / "model",
        tier="reference",
        model_id="standin/small",
        licence="Apache-2.0",
        source="a test",
        pins_path=pins,
    )
    (place / "locks").mkdir()
    shutil.copy(CHECKOUT / "locks" / "build.txt", place / "locks" / "build.txt")
    (h11,) = [wheel for wheel in lock.read(CHECKOUT / "locks" / "runtime-cpu.txt") if wheel.name == "h11"]
    (place / "locks" / "runtime-cpu.txt").write_text(f"h11=={h11.version} --hash=sha256:{h11.hashes[0]}\n")
    return ImageOrder(
        checkout=CHECKOUT, output=place / "out" / "cpu", variant="cpu", model=place / "model", pins=pins,
        engine=STANDIN,
        locks=place / "locks", wheels=CHECKOUT / "wheelhouse", repository="urn:assay:source", builds=2,
    )  # fmt: skip


@pytest.fixture(scope="module")
def built(order: ImageOrder) -> Built:
    return Built(order=order, report=make_image(order))


@pytest.fixture(autouse=True)
def nothing_is_left() -> Iterator[None]:
    """Whatever a test does, no container and no image of it may survive."""
    with docker_engine() as client:
        before = {item.id for item in client.images.list(all=True)}
        yield
        assert client.containers.list(all=True, filters={"label": hardening.LABEL}) == []
        assert {item.id for item in client.images.list(all=True)} <= before


def _variant(built: Built, tmp_path: Path, **config: Any) -> Path:
    """The image with another configuration, without building again."""
    source = oci_store.load(built.layout)
    changed = json.loads(source.config.content)
    changed["config"] |= config
    steps = [entry["created_by"] for entry in changed["history"]]
    other = oci.assemble(layers=source.layers, source=changed, annotations={}, epoch=5, steps=steps)
    oci_store.save(other, tmp_path / "variant")
    return tmp_path / "variant"


def _faulty(built: Built, tmp_path: Path, fault: str, **config: Any) -> Path:
    """The image whose stand-in breaks one rule."""
    environment = json.loads(oci_store.load(built.layout).config.content)["config"]["Env"]
    return _variant(built, tmp_path, Env=[*environment, f"STANDIN_FAULT={fault}"], **config)


def test_two_builds_are_one_image(built: Built) -> None:
    assert built.report["reproduction"] == {"builds": 2, "equal": True, "differences": []}
    assert built.report["tier"] == "reference"


def test_the_annotations_say_what_it_is(built: Built) -> None:
    annotations = json.loads(oci_store.load(built.layout).manifest.content)["annotations"]
    assert annotations["assay.model.id"] == "standin/small"
    assert annotations["assay.tier"] == "reference"
    assert annotations["org.opencontainers.image.base.digest"] == built.report["base"]["digest"]
    assert all(annotations.values())


def test_the_bill_of_materials_is_valid_and_complete(built: Built) -> None:
    content = (built.order.output / image.SBOM).read_bytes()
    assert faults(content) == ()
    listed = {item["name"] for item in json.loads(content)["components"]}
    assert {part["name"] for part in built.report["parts"]} == listed
    assert {"h11", "libc6", "standin/small", "model.safetensors"} <= listed


def test_a_hardened_run_sees_everything(built: Built) -> None:
    record = ContainerRecord()
    with container_subject(ContainerOrder(layout=built.layout), record) as subject:
        assert subject.alive()
        assert subject.model is not None
        assert (subject.model / "model.safetensors").read_bytes() == (
            built.order.model / "model.safetensors"
        ).read_bytes()
    document = record.document(RUN)
    assert document["findings"] == []
    assert (
        document["image"]["digests"]["local_id"]
        == document["image"]["digests"]["config"]
        == built.report["digests"]["config"]
    )
    assert document["image"]["pulled_into_empty_store"]
    assert document["inside"]["method"] == "exec"
    assert int(document["inside"]["status"]["CapBnd"], 16) == 0
    assert document["inside"]["tools"] == []
    assert document["shutdown"]["streaming"]
    assert document["shutdown"]["orphans"] == []
    assert document["restart"]["speech_status"] == 200


@pytest.mark.parametrize(
    ("fault", "code", "words"),
    [
        ("dies", FaultCode.DIED_ON_START, "told to die"),
        ("writes_root", FaultCode.WRITES_TO_ROOT, "/state"),
    ],
)
def test_an_image_that_does_not_start_is_named(
    built: Built, tmp_path: Path, fault: str, code: FaultCode, words: str
) -> None:
    layout = _faulty(built, tmp_path, fault, **({"User": "0:0"} if fault == "writes_root" else {}))
    record = ContainerRecord()
    with pytest.raises(ContainerFault, match=words) as caught, container_subject(ContainerOrder(layout=layout), record):
        pass
    assert caught.value.code is code
    assert [finding["code"] for finding in record.document(RUN)["findings"]] == [code]


def test_an_image_that_never_becomes_ready_is_named(
    built: Built, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(life.start.__kwdefaults__ or {}, "limit", 4.0)
    record = ContainerRecord()
    layout = _faulty(built, tmp_path, "never_ready")
    with (
        pytest.raises(ContainerFault, match="not ready within") as caught,
        container_subject(ContainerOrder(layout=layout), record),
    ):
        pass
    assert caught.value.code is FaultCode.NEVER_READY
    assert record.document(RUN)["cleanup"] == {"containers_left": [], "images_left": []}


def test_a_caller_that_fails_leaves_nothing(built: Built) -> None:
    record = ContainerRecord()
    with (
        pytest.raises(RuntimeError, match="in the middle"),
        container_subject(ContainerOrder(layout=built.layout), record),
    ):
        raise RuntimeError("in the middle")
    assert record.document(RUN)["cleanup"] == {"containers_left": [], "images_left": []}


@pytest.mark.parametrize("image_name", ["assay/engine", "assay/engine:latest"])
def test_an_image_by_tag_is_refused(image_name: str) -> None:
    order = ContainerOrder(image=image_name)
    with pytest.raises(ContainerFault, match="by tag") as caught, container_subject(order, ContainerRecord()):
        pass
    assert caught.value.code is FaultCode.REFERENCE_BY_TAG


def test_a_base_by_tag_is_refused_by_harness(order: ImageOrder) -> None:
    with pytest.raises(ContainerFault, match="by tag") as caught:
        make_image(replace(order, base="debian:12", builds=1))
    assert caught.value.code is FaultCode.BASE_BY_TAG


def test_a_base_by_tag_stops_the_dockerfile_itself(built: Built, tmp_path: Path) -> None:
    """Without the harness: the real base under a tag, and a build as anybody would start it."""
    archive = _context(tmp_path / "context.tar")
    with (
        docker_engine() as client,
        _tagged_base(client, built) as tag,
        leftovers_removed(client) as made,
        archive.open("rb") as stream,
    ):
        told = client.api.build(
            fileobj=stream,
            custom_context=True,
            target="verify",
            buildargs={"BASE": tag},
            decode=True,
            rm=True,
            forcerm=True,
        )
        events = list(noted(told, made))
    assert any("error" in event for event in events)
    assert "base_by_tag" in "".join(event.get("stream", "") for event in events)


def _context(path: Path) -> Path:
    """As much of a context as the first step needs."""
    script = "qualification/container/stage_install.py"
    with tarfile.open(path, "w") as archive:
        archive.add(CHECKOUT / "Dockerfile", "Dockerfile")
        archive.add(CHECKOUT / script, script)
        for name in ("wheelhouse", "locks"):
            header = tarfile.TarInfo(name)
            header.type = tarfile.DIRTYPE
            archive.addfile(header)
    return path


@contextmanager
def _tagged_base(client: docker.DockerClient, built: Built) -> Iterator[str]:
    found = oci_store.load(built.order.output.parent / "base")
    with loopback_registry() as registry:
        publish.pull(client, publish.publish(found, registry, "x/base"), expected_config=found.config.digest)
    try:
        client.images.get(found.config.digest).tag("assay-test/base", "1")
        yield "assay-test/base:1"
    finally:
        publish.forget(client, found.config.digest)


def test_the_wrong_weights_stop_before_and_inside_the_build(order: ImageOrder, tmp_path: Path) -> None:
    shutil.copytree(order.model, tmp_path / "model")
    write_sound(tmp_path / "model" / "model.safetensors", fill=9)
    with pytest.raises(ContainerFault, match=r"model\.safetensors") as caught:
        make_image(replace(order, model=tmp_path / "model", builds=1, output=tmp_path / "out" / "cpu"))
    assert caught.value.code is FaultCode.WEIGHTS_DIFFER


def test_the_wrong_weights_stop_inside_the_build(
    order: ImageOrder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The harness is made to look away; the stage in the Dockerfile does not."""
    shutil.copytree(order.model, tmp_path / "model")
    write_sound(tmp_path / "model" / "model.safetensors", fill=9)
    monkeypatch.setattr(image, "UNVERIFIED", "nothing is called so")
    if not (order.output.parent / "base").is_dir():
        base.make_base(order.output.parent / "base", base.load_plan())
    shutil.copytree(order.output.parent / "base", tmp_path / "out" / "base")
    with pytest.raises(ContainerFault, match=r"model\.safetensors") as caught:
        make_image(replace(order, model=tmp_path / "model", builds=1, output=tmp_path / "out" / "cpu"))
    assert caught.value.code is FaultCode.WEIGHTS_DIFFER


def test_a_dirty_tree_is_refused_where_the_policy_wants_a_clean_one(
    order: ImageOrder, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = image.source.SourceState(commit="a" * 40, epoch=1, changed=("x.py",))
    monkeypatch.setattr(image.source, "source_state", lambda _: state)
    with pytest.raises(ContainerFault, match=r"x\.py") as caught:
        make_image(replace(order, clean=True, builds=1))
    assert caught.value.code is FaultCode.DIRTY_TREE


def test_a_registry_that_is_down_is_named(built: Built) -> None:
    order = ContainerOrder(layout=built.layout, registry="127.0.0.1:9")
    with pytest.raises(ContainerFault) as caught, container_subject(order, ContainerRecord()):
        pass
    assert caught.value.code is FaultCode.REGISTRY_REFUSES


def test_the_record_fits_its_schema_after_a_fault() -> None:
    record = ContainerRecord()
    with pytest.raises(ContainerFault), container_subject(ContainerOrder(layout=Path("nowhere")), record):
        pass
    schema.validate("container", record.document(RUN), "container.json")
