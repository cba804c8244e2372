"""What an image says of itself: build arguments that become labels, and labels that become OCI annotations.

The tier in a label is derived from the verified hashes like everywhere else, and is still only a label: gates hash
again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from qualification.container import oci
from qualification.container.source import SourceState
from qualification.digest import sha256_bytes
from qualification.identity import Judgement
from qualification.pins import WEIGHTS

LICENCES = "Apache-2.0"


@dataclass(frozen=True, kw_only=True)
class BaseFacts:
    """Name and digest of the base as a label gives them.

    A loopback registry is only a means of transport and is left out.
    """

    name: str
    digest: str


def arguments(
    *, source: SourceState, repository: str, version: str, base: BaseFacts, judgement: Judgement, variant: str
) -> Mapping[str, str]:
    """The Dockerfile's build arguments."""
    model = judgement.model
    return {
        "BASE_NAME": base.name,
        "BASE_DIGEST": base.digest,
        "CREATED": oci.timestamp(source.epoch),
        "LICENCES": LICENCES,
        "MODEL_DIGEST": model_digest(judgement),
        "MODEL_ID": model.id if model else "unknown",
        "MODEL_REVISION": (model.revision if model else None) or "none",
        "MODEL_WEIGHTS": weights(judgement),
        "REVISION": source.revision,
        "SOURCE": repository,
        "TIER": judgement.tier,
        "VARIANT": variant,
        "VERSION": version,
    }


def model_digest(judgement: Judgement) -> str:
    """One digest over all files of the model: SHA-256 of the sorted lines `<sha256>  <path>`."""
    lines = sorted(
        f"{item.found.sha256}  {item.path}\n" for item in judgement.findings if item.found and item.found.sha256
    )
    return f"sha256:{sha256_bytes(''.join(lines).encode())}"


def weights(judgement: Judgement) -> str:
    """`path=sha256:…` of each weight file, comma-separated."""
    found = [item for item in judgement.findings if item.pin and item.pin.role == WEIGHTS and item.found]
    return ",".join(f"{item.path}=sha256:{item.found.sha256}" for item in found if item.found)
