"""Layers made by hand for the tests: a mapping of path -> content, with whatever clock and owner the test wants."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Mapping
from pathlib import Path

Content = bytes | str | None  # a file, a symbolic link, a directory


def write_tar(
    path: Path, entries: Mapping[str, Content], *, mtime: int = 7, owner: str = "", backwards: bool = False
) -> Path:
    """Write an archive; `str` content is a symbolic link's target, None a directory."""
    with tarfile.open(path, "w") as archive:
        for name in sorted(entries, reverse=backwards):
            content = entries[name]
            header = tarfile.TarInfo(name)
            header.mtime, header.uname = mtime, owner
            if content is None:
                header.type, header.mode = tarfile.DIRTYPE, 0o755
            elif isinstance(content, str):
                header.type, header.linkname = tarfile.SYMTYPE, content
            else:
                header.size, header.mode = len(content), 0o644
            archive.addfile(header, io.BytesIO(content) if isinstance(content, bytes) else None)
    return path
