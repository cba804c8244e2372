"""Step of the `verify` stage: the model's files must be the pinned ones before they may enter the image.

The same identity code that qualifies a running engine decides here; what it found goes into the image as
`identity.json`. Anything but a complete match of a pinned model stops the build.
"""

from __future__ import annotations

import sys
from pathlib import Path

from qualification import strictjson
from qualification.container import layout
from qualification.identity import UNVERIFIED, identity_document, judge, survey
from qualification.pins import load_pins

PINS = Path("/build/pins.json")
RUN_ID = "image-build"


def main(model: Path = Path(layout.MODEL), pins_file: Path = PINS, target: Path = Path(layout.IDENTITY)) -> None:
    """Judge the model directory and keep the judgement, or stop the build with the files that differ."""
    pins = load_pins(pins_file)
    judgement = judge(survey(model, pins), pins)
    if judgement.tier == UNVERIFIED:
        faults = [
            f"{item.path}: {item.outcome}, {item.detail}"
            for item in judgement.findings
            if item.outcome not in ("matched", "recorded")
        ]
        sys.exit("\n  ".join((f"weights_differ: {judgement.sentence}", *faults)))
    strictjson.write(target, identity_document(RUN_ID, judgement))


if __name__ == "__main__":
    main()
