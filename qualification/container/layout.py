"""Where things lie inside the image, and what may not lie there. Shared by the build's stages and the inspection."""

from __future__ import annotations

from pathlib import PurePosixPath

PREFIX = PurePosixPath("/opt/assay")
SITE = PREFIX / "lib/python3.11/site-packages"
MODEL = PREFIX / "model"
SHARE = PREFIX / "share"
NOTICES = SHARE / "NOTICES.txt"
IDENTITY = SHARE / "identity.json"
HEALTHCHECK = SHARE / "healthcheck.py"
PYCACHE = PREFIX / "pycache"
BASE_PYTHON = PurePosixPath("/usr/bin/python3.11")
STANDARD_LIBRARY = PurePosixPath("/usr/lib/python3.11")
PACKAGES = PurePosixPath("/var/lib/dpkg/status.d")
COPYRIGHTS = PurePosixPath("/usr/share/doc")
UID = 10001
GID = 10001
PORT = 8000

TOOLS = frozenset(
    {
        "apt",
        "apt-get",
        "ash",
        "awk",
        "bash",
        "busybox",
        "c++",
        "cc",
        "clang",
        "cmake",
        "csh",
        "curl",
        "dash",
        "debconf",
        "dpkg",
        "fish",
        "g++",
        "gcc",
        "git",
        "gmake",
        "go",
        "ksh",
        "ld",
        "make",
        "mawk",
        "nc",
        "ninja",
        "openssl",
        "perl",
        "pip",
        "pip3",
        "protoc",
        "rustc",
        "sh",
        "su",
        "sudo",
        "tar",
        "tcc",
        "tcsh",
        "wget",
        "zsh",
    }
)
# Headers, CMake files, compilers, test programs: for building extensions, not for running. torch needs its
# `torch_shm_manager` at import, so that one stays.
PRUNED = (
    "torch/bin/[!t]*",
    "torch/bin/test*",
    "torch/include",
    "torch/lib/*.a",
    "torch/lib/libbackend_with_compiler.so",
    "torch/lib/lib*_test.so",
    "torch/share",
    "torch/test",
)
