"""The base image where no registry is reachable: Debian's interpreter and libraries, made by mmdebstrap.

Equal package archives give equal bytes, whatever the day: the epoch is fixed in the plan. Debian's archive itself
moves with its point releases; the archive hashes of the day are kept in the base and end up in the bill of materials.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from qualification import schema
from qualification.container import oci, oci_store
from qualification.container.base_tree import BasePlan, prune
from qualification.container.faults import ContainerFault, FaultCode
from qualification.paths import data_file

PROGRAM = "mmdebstrap"
REPOSITORY = "assay/base"
PLAN = "container-base.json"
SECONDS = 900


def load_plan() -> BasePlan:
    """The plan that ships with the package."""
    return BasePlan.from_json(schema.load("container-base", data_file(PLAN)))


def make_base(directory: Path, plan: BasePlan) -> oci.Image:
    """Make the base and store it as an image layout at `directory`.

    Raises:
        ContainerFault: `base_not_built`, with the end of mmdebstrap's own account.
    """
    with tempfile.TemporaryDirectory(prefix="assay-base-", dir=_scratch(directory)) as place:
        tree, layer = Path(place) / "tree.tar", Path(place) / "layer.tar"
        _unpack(plan, tree)
        pruned = prune(tree, layer, plan)
        image = oci.assemble(
            layers=(pruned,),
            source={"architecture": plan.architecture, "os": "linux", "config": {"Env": ["PATH=/usr/bin"]}},
            annotations={
                f"{oci.ANNOTATION}title": "Python on Debian without tools",
                f"{oci.ANNOTATION}created": oci.timestamp(plan.epoch),
            },
            epoch=plan.epoch,
            steps=(f"mmdebstrap {plan.suite}: {' '.join(plan.packages)}",),
        )
        return oci_store.save(image, directory)


def _unpack(plan: BasePlan, tree: Path) -> None:
    program = shutil.which(PROGRAM)
    if program is None:
        raise ContainerFault(
            FaultCode.BASE_NOT_BUILT, f"{PROGRAM} is not installed; install it, or give a base by digest"
        )
    hook = Path(__file__).with_name("base_hook.py")
    command = [program, "--quiet", "--variant=extract", "--mode=root", "--format=tar", "--skip=output/dev"]
    command += [f"--architectures={plan.architecture}", f"--include={','.join(plan.packages)}"]
    command += [f'--extract-hook=/usr/bin/python3 -I {hook} "$1"', plan.suite, str(tree)]
    environment = {**os.environ, "SOURCE_DATE_EPOCH": str(plan.epoch), "LC_ALL": "C.UTF-8"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=SECONDS)
    if done.returncode:
        raise ContainerFault(
            FaultCode.BASE_NOT_BUILT, f"{PROGRAM} ended with status {done.returncode}: {done.stderr.strip()[-400:]}"
        )


def _scratch(directory: Path) -> Path:
    directory.parent.mkdir(parents=True, exist_ok=True)
    return directory.parent
