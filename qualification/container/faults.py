"""Named faults of images, registries and engines: a code for each kind, and a text that says what would mend it.

A fault is raised where it is found; the subject's context manager turns it into a finding of the record, so that a gate
can name it. `NO_ENGINE` is the only one that means "not performed" instead of "failed".
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from qualification.errors import SubjectError


class FaultCode(StrEnum):
    """What went wrong, in one word per kind."""

    NO_ENGINE = "no_engine"
    ENGINE_UNREACHABLE = "engine_unreachable"
    REFERENCE_BY_TAG = "reference_by_tag"
    REFERENCE_MALFORMED = "reference_malformed"
    BASE_BY_TAG = "base_by_tag"
    BASE_NOT_BUILT = "base_not_built"
    DIRTY_TREE = "dirty_tree"
    LOCK_INCOMPLETE = "lock_incomplete"
    WHEEL_MISSING = "wheel_missing"
    WHEEL_HASH_DIFFERS = "wheel_hash_differs"
    WEIGHTS_DIFFER = "weights_differ"
    BUILD_FAILED = "build_failed"
    IMAGE_MALFORMED = "image_malformed"
    REGISTRY_MISSING = "registry_missing"
    REGISTRY_REFUSES = "registry_refuses"
    DIGEST_DIFFERS = "digest_differs"
    PULL_FAILED = "pull_failed"
    START_FAILED = "start_failed"
    DIED_ON_START = "died_on_start"
    NEVER_READY = "never_ready"
    WRITES_TO_ROOT = "writes_to_root"
    CLEANUP_FAILED = "cleanup_failed"


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One fault as the record keeps it."""

    code: FaultCode
    detail: str

    def to_json(self) -> dict[str, str]:
        """The object that `container.json` holds."""
        return {"code": self.code.value, "detail": self.detail}


class ContainerFault(SubjectError):
    """A fault with its code. `str()` is the whole sentence, the mend included."""

    def __init__(self, code: FaultCode, detail: str) -> None:
        super().__init__(detail)
        self.code = code

    @property
    def finding(self) -> Finding:
        """The same fault as data."""
        return Finding(code=self.code, detail=str(self))
