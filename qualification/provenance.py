"""Where an image comes from: SLSA v1 provenance as an in-toto Statement over the platform digest.

Made from the build report alone. It says what the builder did, not that nobody could have done otherwise: the builder
is this harness on one machine, and whoever needs more isolation runs it on a hosted builder. No secret and no private
path may be in it: `leaks` looks for both and a statement with either is refused. Source: SLSA provenance v1, in-toto
attestation framework v1.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from qualification import schema
from qualification.errors import InputError

STATEMENT_TYPE = "https://in-toto.io/Statement/v1"
PREDICATE_TYPE = "https://slsa.dev/provenance/v1"
BUILD_TYPE = "urn:assay:build:image:v1"
BUILDER = "urn:assay:builder:harness:v1"
_LEAKS = {
    "a private path": re.compile(r"(?:^|[\s\"'=:])(?:/(?:home|root|Users|work|tmp|var/tmp|mnt|private)/|[A-Z]:\\\\)"),
    "credentials in a URL": re.compile(r"://[^/\s\"@]+@"),
    "a private key": re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----"),
    "a token": re.compile(
        r"\b(?:gh[pousr]_[A-Za-z0-9]{20,}|glpat-[A-Za-z0-9_-]{16,}|AKIA[0-9A-Z]{16}|xox[abp]-[A-Za-z0-9-]{10,}|hf_[A-Za-z0-9]{20,})"
    ),
    "a secret by name": re.compile(
        r"(?i)\b(?:password|passwd|secret|api[_-]?key|access[_-]?token)\b\s*[\"']?\s*[:=]\s*[\"']?[^\s\"',}]{4,}"
    ),
}


def statement(report: Mapping[str, Any], *, harness: str, began: float, ended: float) -> dict[str, Any]:
    """The statement of one build.

    Raises:
        InputError: where it would give away a secret or a private path.
        SchemaError: where it breaks its schema.
    """
    platform = report["digests"]["platform"]
    document = {
        "_type": STATEMENT_TYPE,
        "subject": [{"name": "assay/engine", "digest": {"sha256": _hex(platform)}}],
        "predicateType": PREDICATE_TYPE,
        "predicate": {"buildDefinition": _definition(report), "runDetails": _run(report, harness, began, ended)},
    }
    found = leaks(document)
    if found:
        raise InputError(f"the provenance would give away {', '.join(found)}; correct the build's parameters")
    schema.validate(name="provenance", document=document, source="provenance.json")
    return document


def leaks(document: Any) -> tuple[str, ...]:
    """Kinds of things in a document that must not leave the machine, sorted."""
    text = json.dumps(document, ensure_ascii=False)
    return tuple(sorted(kind for kind, pattern in _LEAKS.items() if pattern.search(text)))


def _definition(report: Mapping[str, Any]) -> dict[str, Any]:
    arguments = {item["name"]: item["value"] for item in report["arguments"]}
    return {
        "buildType": BUILD_TYPE,
        "externalParameters": {"variant": report["variant"], "arguments": arguments, "network": "none"},
        "internalParameters": {
            "epoch": report["source"]["epoch"],
            "dirty": report["source"]["dirty"],
            "changed": report["source"]["changed"],
        },
        "resolvedDependencies": _dependencies(report, arguments),
    }


def _dependencies(report: Mapping[str, Any], arguments: Mapping[str, str]) -> list[dict[str, Any]]:
    files = [("Dockerfile", report["dockerfile_sha256"]), ("pins.json", report["pins_sha256"])]
    files += [(f"locks/{lock['name']}", lock["sha256"]) for lock in report["locks"]]
    base = report["base"]
    return [
        {"name": "source", "uri": f"git+{arguments['SOURCE']}", "digest": {"gitCommit": report["source"]["commit"]}},
        {
            "name": "base",
            "uri": f"pkg:oci/{base['name'].rpartition('/')[2]}",
            "digest": {"sha256": _hex(base["digest"])},
        },
        {
            "name": "model",
            "uri": f"urn:assay:model:{arguments['MODEL_ID']}",
            "digest": {"sha256": _hex(arguments["MODEL_DIGEST"])},
        },
        *({"name": name, "digest": {"sha256": value}} for name, value in files),
        *(
            {"name": item["name"], "uri": _purl(item), "digest": {"sha256": item["sha256"]}}
            for item in report["wheels"]
        ),
    ]


def _purl(wheel: Mapping[str, str]) -> str:
    return f"pkg:pypi/{wheel['name']}@{wheel['version'].replace('+', '%2B')}"


def _run(report: Mapping[str, Any], harness: str, began: float, ended: float) -> dict[str, Any]:
    digests = report["digests"]
    return {
        "builder": {"id": BUILDER, "version": {"harness": harness, "engine": report["engine"]["version"]}},
        "metadata": {
            "invocationId": f"{_hex(digests['platform'])[:16]}-{int(began)}",
            "startedOn": _moment(began),
            "finishedOn": _moment(ended),
        },
        "byproducts": [
            {"name": "index", "digest": {"sha256": _hex(digests["index"])}},
            {"name": "config", "digest": {"sha256": _hex(digests["config"])}},
        ],
    }


def _hex(digest: str) -> str:
    return digest.removeprefix("sha256:")


def _moment(seconds: float) -> str:
    return datetime.fromtimestamp(int(seconds), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
