"""The manifest: role, path, size and SHA-256 of every file of a bundle except itself, the statement over it, and layers.

Every path has exactly one role, by rule; a file without a role cannot be sealed, so nothing slips in unnamed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from qualification import paths, schema
from qualification.digest import SHA256, Digest, sha256_file
from qualification.errors import BundleError

OUTSIDE: Final = frozenset({paths.MANIFEST, paths.STATEMENT})
_ROLES: Final[tuple[tuple[str, str], ...]] = (
    (r"run\.json", "run"),
    (r"(policy|pins|workload)\.json", "input"),
    (r"identity\.json", "identity"),
    (r"licences\.json", "licences"),
    (r"environment\.json", "environment"),
    (r"samples/[^/]+\.jsonl", "raw"),
    (r"audio/[^/]+\.wav", "audio"),
    (r"telemetry\.jsonl|phases\.json", "telemetry"),
    (r"records/[^/]+\.json", "record"),
    (r"abandoned/\d\d/.+", "abandoned"),
    (r"sbom/[^/]+\.json", "sbom"),
    (r"logs/[^/]+\.(log|txt)", "log"),
    (r"gates\.json", "gates"),
    (r"summary\.json", "summary"),
    (r"report\.html", "report"),
)


def is_outside(path: str) -> bool:
    """Whether the manifest leaves this file out: itself, the statement over it, and what was added after sealing."""
    return path in OUTSIDE or paths.in_layer(path)


def role_of(path: str) -> str:
    """The role that a path has by rule.

    Raises:
        BundleError: where no rule names it.
    """
    paths.check_bundle_path(path)
    for pattern, role in _ROLES:
        if re.fullmatch(pattern, path):
            return role
    raise BundleError(
        f"{path}: no role is known for such a file; store it under records/, sbom/ or logs/, or leave it out"
    )


def build(root: Path, run_id: str) -> dict[str, Any]:
    """The document `manifest.json` for what lies below `root` now, but for the journal, which goes when all is written.

    Raises:
        BundleError: a link, a special file, an empty directory or a file without a role.
    """
    found = paths.walk(root)
    if found.irregular:
        raise BundleError(
            f"{', '.join(found.irregular)}: links, special files and empty directories cannot be sealed; remove them"
        )
    names = [path for path in found.files if not is_outside(path) and not _in_journal(path)]
    return {"schema": schema.urn("manifest"), "run_id": run_id, "files": [_entry(root, path) for path in names]}


def digests(manifest: Mapping[str, Any]) -> dict[str, Digest]:
    """Path -> digest, as a manifest states it."""
    return {entry["path"]: Digest(algorithm=SHA256, value=entry["sha256"]) for entry in manifest["files"]}


def digests_of_files(root: Path, names: Iterable[str]) -> dict[str, Digest]:
    """Path -> digest, as the files are."""
    return {name: Digest(algorithm=SHA256, value=sha256_file(paths.locate(root, name))) for name in names}


def _in_journal(path: str) -> bool:
    return path.startswith(f"{paths.JOURNAL_DIRECTORY}/")


def _entry(root: Path, path: str) -> dict[str, Any]:
    place = paths.locate(root, path)
    return {"role": role_of(path), "path": path, "bytes": place.stat().st_size, "sha256": sha256_file(place)}
