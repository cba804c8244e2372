"""From an unpacked Debian tree to a base without tools, as a pure function over its archive.

Debian's dependencies bring an installer's tools (dpkg, debconf, tar, awk, openssl) that no service calls: the plan
names those packages and they leave file by file, so that the base can list every package it holds and holds no file
that none of them owns. Not covered: fetching and unpacking, which mmdebstrap does (`base`).
"""

from __future__ import annotations

import stat
import tarfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from qualification.container.base_hook import NOTES
from qualification.container.faults import ContainerFault, FaultCode
from qualification.container.layer import Entry, Layer, canonical, write

DIRECTORIES = {"dev": 0o755, "opt": 0o755, "proc": 0o555, "run": 0o755, "sys": 0o555, "tmp": 0o1777}
UNUSED = (
    "boot",
    "etc/cron.daily",
    "etc/default",
    "etc/profile.d",
    "etc/skel",
    "etc/update-motd.d",
    "home",
    "media",
    "mnt",
    "srv",
    "usr/games",
    "usr/include",
    "usr/lib/binfmt.d",
    "usr/share/base-files",
    "usr/share/binfmts",
    "usr/share/bug",
    "usr/share/gcc",
    "usr/share/gdb",
    "usr/share/info",
    "usr/share/lintian",
    "usr/share/locale",
    "usr/share/man",
    "usr/share/menu",
    "usr/src",
)


@dataclass(frozen=True, kw_only=True)
class BasePlan:
    """What the base is made of; read from `container-base.json`."""

    suite: str
    architecture: str
    epoch: int
    packages: tuple[str, ...]
    dropped: frozenset[str]
    user: str
    uid: int
    gid: int

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> BasePlan:
        """Read a document that the `container-base` schema has accepted."""
        account = document["user"]
        return cls(
            suite=document["suite"],
            architecture=document["architecture"],
            epoch=document["epoch"],
            packages=tuple(document["packages"]),
            dropped=frozenset(document["dropped"]),
            user=account["name"],
            uid=account["uid"],
            gid=account["gid"],
        )


def prune(tree: Path, target: Path, plan: BasePlan) -> Layer:
    """Write the base's only layer to `target` from the archive `tree` that mmdebstrap made.

    Raises:
        ContainerFault: `base_not_built` where the tree carries no notes of `base_hook`.
    """
    with tarfile.open(tree) as archive:
        members = {canonical(member.name): member for member in archive.getmembers()}
        owned = _owned(archive, members, plan.dropped)
        kept = [_entry(archive, member) for name, member in members.items() if _belongs(member, name, owned)]
    kept.extend(_own_files(plan, {canonical(entry.header.name) for entry in kept}))
    return write(kept, target, epoch=plan.epoch)


def _owned(archive: tarfile.TarFile, members: Mapping[str, tarfile.TarInfo], dropped: frozenset[str]) -> frozenset[str]:
    """Paths of the packages that stay, and of their control paragraphs."""
    lists = {name[len(NOTES) + 1 : -5] for name in members if name.startswith(f"{NOTES}/") and name.endswith(".list")}
    if not lists:
        raise ContainerFault(
            FaultCode.BASE_NOT_BUILT, "the unpacked tree lists no package; did mmdebstrap run the hook?"
        )
    paths: set[str] = set()
    for package in lists - dropped:
        content = archive.extractfile(members[f"{NOTES}/{package}.list"])
        paths.update(canonical(line) for line in (content.read().decode() if content else "").splitlines())
        paths.add(f"{NOTES}/{package}")
    return frozenset(paths)


def _belongs(member: tarfile.TarInfo, name: str, owned: frozenset[str]) -> bool:
    if name.startswith("usr/share/doc/") and not _is_copyright(member, name):
        return False
    if name in DIRECTORIES or any(f"{name}/".startswith(f"{place}/") for place in UNUSED):
        return False
    return name in owned


def _is_copyright(member: tarfile.TarInfo, name: str) -> bool:
    """A copyright file, its directory, or a package's link to another package's directory."""
    return name.endswith("/copyright") or (name.count("/") == 3 and (member.isdir() or member.issym()))


def _entry(archive: tarfile.TarFile, member: tarfile.TarInfo) -> Entry:
    member.mode &= ~(stat.S_ISUID | stat.S_ISGID)
    content = archive.extractfile(member) if member.isreg() else None
    return Entry(header=member, content=content.read() if content else None)


def _own_files(plan: BasePlan, present: set[str]) -> Iterator[Entry]:
    for name, mode in DIRECTORIES.items():
        yield _directory(name, mode)
    if "usr/bin/python3" not in present:
        yield _link("usr/bin/python3", "python3.11")
    yield _file(
        "etc/passwd",
        f"root:x:0:0:root:/:/nonexistent\n{plan.user}:x:{plan.uid}:{plan.gid}::/nonexistent:/nonexistent\n",
    )
    yield _file("etc/group", f"root:x:0:\n{plan.user}:x:{plan.gid}:\n")
    yield _file("etc/nsswitch.conf", "passwd: files\ngroup: files\nhosts: files\n")


def _directory(name: str, mode: int) -> Entry:
    header = tarfile.TarInfo(name)
    header.type, header.mode = tarfile.DIRTYPE, mode
    return Entry(header=header)


def _link(name: str, target: str) -> Entry:
    header = tarfile.TarInfo(name)
    header.type, header.mode, header.linkname = tarfile.SYMTYPE, 0o777, target
    return Entry(header=header)


def _file(name: str, text: str) -> Entry:
    header = tarfile.TarInfo(name)
    header.mode, header.size = 0o644, len(text.encode())
    return Entry(header=header, content=text.encode())
