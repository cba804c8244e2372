"""Last step of the `verify` stage: what is installed becomes what ships. Runs inside the build, as root.

1. Leave out what only a builder of extensions needs, and every installed script.
2. Put the interpreter's link, the health check and the third-party notices in place.
3. Compile all modules once, equal bytes for equal sources, so that a read-only root starts fast.
4. Root owns everything; model files are 0444, other files 0644 or 0755; one modification time.
"""

from __future__ import annotations

import compileall
import os
import py_compile
import shutil
import sys
from pathlib import Path

from qualification.container import layout
from qualification.container.notices import notices

MODEL_MODE = 0o444


def main() -> None:
    """Run the four steps of the module's docstring."""
    prefix = Path(layout.PREFIX)
    prune(prefix)
    furnish(prefix)
    compile_all()
    settle(prefix, Path(layout.MODEL), int(os.environ["SOURCE_DATE_EPOCH"]))


def prune(prefix: Path) -> None:
    """Remove `layout.PRUNED` and the scripts that wheels bring."""
    for pattern in layout.PRUNED:
        for path in sorted(Path(layout.SITE).glob(pattern)):
            remove(path)
    shutil.rmtree(prefix / "bin", ignore_errors=True)
    shutil.rmtree(Path(layout.SITE) / "engine" / "reference_model", ignore_errors=True)


def remove(path: Path) -> None:
    """Remove a file or a tree."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink()


def furnish(prefix: Path) -> None:
    """Write what the image has beside wheels, engine and model."""
    (prefix / "bin").mkdir(parents=True)
    (prefix / "bin" / "python").symlink_to(layout.BASE_PYTHON)
    (prefix / "pyvenv.cfg").write_text(
        f"home = {layout.BASE_PYTHON.parent}\ninclude-system-site-packages = false\n", encoding="ascii"
    )
    Path(layout.SHARE).mkdir(exist_ok=True)
    shutil.copyfile(Path(__file__).with_name("healthcheck.py"), layout.HEALTHCHECK)
    Path(layout.NOTICES).write_text(notices(), encoding="utf-8")


def compile_all() -> None:
    """Fill the cache prefix for standard library and environment.

    Unchecked, since nothing under a read-only root changes.
    """
    sys.pycache_prefix = str(layout.PYCACHE)
    mode = py_compile.PycInvalidationMode.UNCHECKED_HASH
    for place in (layout.STANDARD_LIBRARY, layout.SITE):
        compileall.compile_dir(place, quiet=2, workers=1, invalidation_mode=mode, maxlevels=40)


def settle(prefix: Path, model: Path, epoch: int) -> None:
    """Owner, mode and time of every file below `prefix`."""
    for directory, names, files in os.walk(prefix, topdown=False):
        for name in sorted(files):
            _settle_file(Path(directory) / name, model, epoch)
        for name in sorted(names):
            _settle_directory(Path(directory) / name, epoch)
    _settle_directory(prefix, epoch)


def _settle_file(path: Path, model: Path, epoch: int) -> None:
    if not path.is_symlink():
        executable = path.stat().st_mode & 0o100
        path.chmod(MODEL_MODE if path.is_relative_to(model) else 0o755 if executable else 0o644)
    os.chown(path, 0, 0, follow_symlinks=False)
    os.utime(path, (epoch, epoch), follow_symlinks=False)


def _settle_directory(path: Path, epoch: int) -> None:
    if not path.is_symlink():
        path.chmod(0o755)
    os.chown(path, 0, 0, follow_symlinks=False)
    os.utime(path, (epoch, epoch), follow_symlinks=False)


if __name__ == "__main__":
    main()
