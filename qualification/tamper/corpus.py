"""Bundles that must be refused: each changes one thing in the good bundle and names the finding that must come.

The corpus is the contract's list and what was found beside it. A tamper whose code does not come slips through, however
many other findings there are; the tests list every code of the verifier that no tamper raises, with the reason.
"""

from __future__ import annotations

from typing import Final

from qualification.tamper.audio_layers import AUDIO_LAYERS
from qualification.tamper.changes import Tamper
from qualification.tamper.content import CONTENT
from qualification.tamper.interrupted import INTERRUPTED
from qualification.tamper.layers import LAYERS
from qualification.tamper.listed import LISTED
from qualification.tamper.relations import RELATIONS
from qualification.tamper.requests import REQUESTS
from qualification.tamper.sealed import SEALED
from qualification.tamper.timing import TIMING
from qualification.tamper.watching import WATCHING

CORPUS: Final[tuple[Tamper, ...]] = (
    *LISTED, *SEALED, *CONTENT, *REQUESTS, *TIMING, *RELATIONS, *WATCHING, *INTERRUPTED, *LAYERS,
    *AUDIO_LAYERS,
)  # fmt: skip
