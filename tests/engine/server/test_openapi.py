"""The served OpenAPI document, and requests made from it: no fault, and nothing out of its own description."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from jsonschema import Draft202012Validator
from schemathesis.core.result import Ok

from tests.engine.server.client import request_bytes
from tests.engine.server.conftest import Process, processes

EXAMPLES = 25
OPERATIONS = 8


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Process]:
    with processes(tmp_path_factory.mktemp("openapi")) as start:
        yield start("--slots", "8")


@pytest.fixture(scope="module")
def document(server: Process) -> dict[str, Any]:
    with server.wire() as wire:
        return wire.ask(request_bytes("GET", "/openapi.json")).document()


def test_document_is_openapi_3_1_with_valid_schemas(document: dict[str, Any]) -> None:
    assert document["openapi"] == "3.1.0"
    assert len(document["paths"]) == OPERATIONS
    for schema in document["components"]["schemas"].values():
        Draft202012Validator.check_schema(schema)


def test_limits_and_rules_are_in_it(document: dict[str, Any]) -> None:
    speech = document["components"]["schemas"]["SpeechBody"]
    assert speech["additionalProperties"] is False
    assert speech["required"] == ["text", "voice_description"]
    assert speech["properties"]["max_duration_seconds"]["maximum"] == 120
    assert speech["properties"]["seed"]["maximum"] == 2**53 - 1
    validator = Draft202012Validator({**document, "$ref": "#/components/schemas/SpeechBody"})
    good = {"text": "a", "voice_description": "b"}
    assert validator.is_valid(good)
    for bad in (
        {"text": " "},
        {"text": "a\0b"},
        {"language": "klingon"},
        {"stream": True, "output_format": "wav"},
        {"sampling": {"strategy": "greedy", "top_k": 1}},
        {"sampling": {"predictor": {"strategy": "greedy", "top_p": 1}}},
        {"x": 1},
    ):
        assert not validator.is_valid({**good, **bad}), bad


@pytest.mark.slow
def test_requests_made_from_the_document_keep_to_it(server: Process, document: dict[str, Any]) -> None:
    schema = schemathesis.openapi.from_dict(document)
    schema.config.update(base_url=f"http://{server.address[0]}:{server.address[1]}")
    seen = 0
    for result in schema.get_all_operations():
        assert isinstance(result, Ok)
        operation = result.ok()
        seen += 1
        _drive(operation, schemathesis.GenerationMode.POSITIVE)
        if operation.body or operation.path_parameters:
            _drive(operation, schemathesis.GenerationMode.NEGATIVE)
    assert seen == OPERATIONS
    assert server.ready()
    assert "fault" not in server.log.read_text()


def _drive(operation: Any, mode: schemathesis.GenerationMode) -> None:
    @given(case=operation.as_strategy(generation_mode=mode))
    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        derandomize=True,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    def check(case: Any) -> None:
        case.call_and_validate(timeout=20)

    check()
