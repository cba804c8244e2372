"""Writes `schemas/examples/`: one valid document a schema, from the good bundle and the data that ships.

`python -m qualification.tamper.examples schemas/examples`. Long lists are cut to two entries, so an example shows a
shape; it is no bundle and does not verify.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from qualification import batch_invariance, paths, schema, signing, strictjson
from qualification.comparison.asking import DEFAULT_MARGIN
from qualification.comparison.document import Asked, compare
from qualification.evidence_view import EvidenceView
from qualification.gates.table import GATES
from qualification.paths import data_file
from qualification.tamper import bench, good, good_review
from qualification.tamper.audio_layers import make_record
from qualification.verify.verifier import verify

_LONGEST: Final = 2
_SHIPPED: Final = {
    "plan": "plan.json",
    "licence-mapping": "licence-mapping.json",
    "container-base": "container-base.json",
    "audio-review-policy": "audio-review.json",
}
_LINES: Final = {"request-record": "samples/b1.jsonl", "telemetry": paths.TELEMETRY}


def examples(root: Path) -> Iterator[tuple[str, Any]]:
    """(schema, document) pairs; the good bundle is built at `root`."""
    bundle = good.build(root)
    for path in sorted((*root.glob("*.json"), *root.glob("records/*.json"))):
        document = strictjson.load(path)
        yield ("envelope" if path.name == paths.STATEMENT else schema.name_of(document, path.name)), document
    envelope = strictjson.load(root / paths.STATEMENT)
    yield "statement", strictjson.loads(signing.payload_of(envelope), "statement")
    for name, path_of_lines in _LINES.items():
        yield name, strictjson.loads_lines((root / path_of_lines).read_bytes(), path_of_lines)[-1]
    review = good_review.make_record([EvidenceView(root)])
    yield "review-record", review
    good_review.add_layer(root, review, bundle.reviewer)
    yield "verification", verify(root, bundle.trust, GATES).to_json()
    yield "batch-invariance", batch_invariance.document(EvidenceView(root))
    yield "audio-review", make_record(bench.Bench(root=root, good=bundle))
    yield "comparison", _comparison(root, bundle)
    for name, file in _SHIPPED.items():
        yield name, strictjson.load(data_file(file))


def _comparison(root: Path, bundle: good.Good) -> dict[str, Any]:
    """The good bundle against a second one, sealed an hour later."""
    other = bench.copy(bundle, root.with_name(f"{root.name}-later"))
    other.edit(paths.PHASES, lambda document: document["clock"].update(zero_utc="2026-01-01T01:00:00.000000Z"))
    other.seal(bench.Reseal.MANIFEST)
    evidence = [EvidenceView(place) for place in (root, other.root)]
    a, b = ((view, verify(view.root, bundle.trust, GATES)) for view in evidence)
    return compare([(a, b)], Asked(within=DEFAULT_MARGIN, limit=DEFAULT_MARGIN))


def shortened(name: str, document: Any) -> Any:
    """`document` with long lists cut as far as its schema allows."""
    short = _cut(document)
    return short if schema.validator_for(name).is_valid(short) else document


def write(directory: Path) -> None:
    """Replace the examples in `directory` by fresh ones."""
    directory.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory() as place:
        for name, document in examples(Path(place, good.RUN_ID)):
            (directory / f"{name}.json").write_bytes(strictjson.dumps(shortened(name, document)))


def _cut(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _cut(child) for key, child in value.items()}
    return [_cut(child) for child in value[:_LONGEST]] if isinstance(value, list) else value


if __name__ == "__main__":
    write(Path(sys.argv[1]))
