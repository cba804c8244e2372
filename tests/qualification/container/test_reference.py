"""A reference means one image for ever, or it is refused by name."""

from __future__ import annotations

import pytest

from qualification.container.faults import ContainerFault, FaultCode
from qualification.container.reference import parse

DIGEST = "sha256:" + "a" * 64


@pytest.mark.parametrize(
    ("text", "registry", "repository"),
    [
        (f"127.0.0.1:5000/assay/engine@{DIGEST}", "127.0.0.1:5000", "assay/engine"),
        (f"localhost/engine@{DIGEST}", "localhost", "engine"),
        (f"registry.example/a/b@{DIGEST}", "registry.example", "a/b"),
        (f"assay/engine@{DIGEST}", None, "assay/engine"),
    ],
)
def test_a_digest_is_read(text: str, registry: str | None, repository: str) -> None:
    reference = parse(text)
    assert (reference.registry, reference.repository, str(reference)) == (registry, repository, text)


@pytest.mark.parametrize("text", ["engine", "engine:latest", "127.0.0.1:5000/engine", f"engine:1.0@{DIGEST}"])
def test_a_tag_is_refused(text: str) -> None:
    with pytest.raises(ContainerFault, match="by tag") as caught:
        parse(text, by_tag=FaultCode.BASE_BY_TAG)
    assert caught.value.code is FaultCode.BASE_BY_TAG


@pytest.mark.parametrize("text", ["engine@sha256:abc", f"Engine/@{DIGEST}", f"@{DIGEST}", "engine@" + DIGEST.upper()])
def test_another_spelling_is_refused(text: str) -> None:
    with pytest.raises(ContainerFault) as caught:
        parse(text)
    assert caught.value.code is FaultCode.REFERENCE_MALFORMED
