"""The workflow files and the commands of docs/ci.md: they are what this command line takes, and no status is lost."""

from __future__ import annotations

import os
import re
import shlex
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from sigstore._cli import _parser as sigstore_parser

from qualification import cli

DOCS = Path(__file__).resolve().parents[2] / "docs"
FILES = sorted((DOCS / "workflows").glob("*.yml"))
TEXTS = {path.name: yaml.safe_load(path.read_text(encoding="utf-8")) for path in FILES}
PINNED = re.compile(r"actions/[a-z-]+@[0-9a-f]{40}")


def _steps(workflow: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for job in workflow["jobs"].values():
        yield from job["steps"]


def _scripts(name: str) -> dict[str, str]:
    return {step["name"]: step["run"] for step in _steps(TEXTS[name]) if "run" in step}


def _commands(text: str, module: str) -> Iterator[list[str]]:
    """The arguments of each `python -m MODULE` in a shell text."""
    for line in text.replace("\\\n", " ").splitlines():
        for command in re.split(r"\|\||&&|;", line):
            words = shlex.split(command, comments=True)
            if module in words and words[words.index(module) - 1] == "-m":
                yield words[words.index(module) + 1 :]


def _fenced() -> str:
    return "\n".join(re.findall(r"```sh\n(.*?)```", (DOCS / "ci.md").read_text(encoding="utf-8"), re.DOTALL))


PLACES = {**{name: "\n".join(_scripts(name).values()) for name in TEXTS}, "ci.md": _fenced()}


@pytest.mark.parametrize("place", PLACES)
def test_each_command_is_one_that_the_command_line_takes(place: str) -> None:
    commands = list(_commands(PLACES[place], "qualification"))
    assert commands
    for command in commands:
        assert callable(cli._parser().parse_args(command).run), command


@pytest.mark.parametrize("place", ["cpu.yml", "verify.yml", "ci.md"])
def test_each_sigstore_command_is_one_that_sigstore_takes(place: str, tmp_path: Path) -> None:
    signed = tmp_path / "statement"
    signed.touch()  # it asks for the file at once
    commands = list(_commands(PLACES[place], "sigstore"))
    assert commands
    for command in commands:
        assert command[-1].endswith(".json")
        sigstore_parser().parse_args([*command[:-1], str(signed)])


def test_a_command_that_does_not_exist_is_seen() -> None:
    (command,) = _commands('run "$X" && \\\n python -m qualification qualify --no-such "$Y" || true', "qualification")
    with pytest.raises(SystemExit):
        cli._parser().parse_args(command)


def test_the_page_names_every_workflow() -> None:
    assert len(FILES) == 3
    page = (DOCS / "ci.md").read_text(encoding="utf-8")
    assert all(f"(workflows/{path.name})" in page for path in FILES)


@pytest.mark.parametrize("name", TEXTS)
def test_actions_are_pinned_and_permissions_are_named(name: str) -> None:
    workflow = TEXTS[name]
    assert workflow["permissions"] == {"contents": "read"}
    assert workflow["defaults"] == {"run": {"shell": "bash"}}, "with pipefail, which the unnamed default has not"
    for step in _steps(workflow):
        assert ("uses" in step) != ("run" in step)
        assert "uses" not in step or PINNED.fullmatch(step["uses"])
        assert "${{ inputs." not in step.get("run", ""), "an input in a script is code; hand it over in env"


@pytest.mark.parametrize("name", TEXTS)
def test_no_step_loses_a_status(name: str) -> None:
    assert "continue-on-error" not in (DOCS / "workflows" / name).read_text(encoding="utf-8")
    for title, script in _scripts(name).items():
        checked = subprocess.run(["bash", "-n"], input=script, text=True, capture_output=True, check=False)
        assert checked.returncode == 0, checked.stderr
        assert not re.search(r"set \+e|\|\| *(true|:)|; *true|\| *tee|trap ", script), title
        kept = re.findall(r"\|\| *(.*)", script)
        assert set(kept) <= {"status=$?"}, title
        assert not kept or 'exit "$status"' in script, title


@pytest.mark.parametrize("name", ["cpu.yml", "gpu.yml"])
def test_the_bundle_is_kept_whatever_happened(name: str) -> None:
    last = list(_steps(TEXTS[name]))[-1]
    assert last["uses"].startswith("actions/upload-artifact@")
    assert last["if"] == "always()"


def _run(script: str, place: Path, statuses: list[int], **environment: str) -> tuple[int, list[str]]:
    """The status of a step, and what it asked of a `python` that ends with `statuses`, one after the other."""
    (place / "bin").mkdir()
    (place / "queue").write_text("".join(f"{status}\n" for status in statuses))
    stand_in = place / "bin" / "python"
    stand_in.write_text(
        f'#!/bin/sh\necho "$*" >> {place}/asked\nstatus=$(head -n 1 {place}/queue)\n'
        f"sed -i 1d {place}/queue\nexit $status\n"
    )
    stand_in.chmod(stand_in.stat().st_mode | stat.S_IXUSR)
    done = subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script], check=False, cwd=place, timeout=30,
        env={**environment, "PATH": f"{place / 'bin'}:{os.environ['PATH']}"},
    )  # fmt: skip
    asked = (place / "asked").read_text().splitlines() if (place / "asked").exists() else []
    return done.returncode, asked


FRESH, AGAIN = "-m qualification qualify --out evidence/x", "-m qualification qualify --resume evidence/x"


@pytest.mark.parametrize(
    ("statuses", "status", "asked"),
    [
        ([0], 0, [FRESH]),
        ([7], 7, [FRESH]),
        ([9], 9, [FRESH]),
        ([14], 14, [FRESH]),
        ([130], 130, [FRESH]),
        ([4, 0], 0, [FRESH, AGAIN]),
        ([137, 7], 7, [FRESH, AGAIN]),
        ([4, 4], 4, [FRESH, AGAIN]),
    ],
)
def test_the_hosted_job_goes_on_once_and_ends_with_the_last_status(
    statuses: list[int], status: int, asked: list[str], tmp_path: Path
) -> None:
    script = _scripts("cpu.yml")["Measure, seal and verify; after a crash go on, once"]
    assert _run(script, tmp_path, statuses, BUNDLE="evidence/x") == (status, asked)


def _measure_in_turn(place: Path, statuses: list[int]) -> tuple[int, list[str]]:
    for side in ("last", "new"):
        (place / side).mkdir()
    script = _scripts("gpu.yml")["Measure both in turn; go on where an attempt before this one had ended"]
    status, asked = _run(
        script, place, statuses, RUNS=str(place), GITHUB_WORKSPACE=str(place), RUNNER_TEMP="/t", MODEL_DIR="/m"
    )
    return status, [Path(re.findall(r"--(?:out|resume) (\S+)", line)[0]).name for line in asked]


def test_the_gpu_job_measures_both_sides_in_turn(tmp_path: Path) -> None:
    assert _measure_in_turn(tmp_path, [0, 7, 0, 0]) == (0, ["last-1", "new-1", "last-2", "new-2"])


@pytest.mark.parametrize("status", [4, 9, 14, 130])
def test_the_gpu_job_stops_where_a_run_is_not_sound_and_whole(status: int, tmp_path: Path) -> None:
    assert _measure_in_turn(tmp_path, [0, status]) == (status, ["last-1", "new-1"])


def test_the_gpu_job_goes_on_where_it_had_ended(tmp_path: Path) -> None:
    (tmp_path / "last-1").mkdir()
    (tmp_path / "last-1" / "manifest.json").touch()  # sealed
    (tmp_path / "new-1").mkdir()  # broken off
    assert _measure_in_turn(tmp_path, [0, 0, 0]) == (0, ["new-1", "last-2", "new-2"])
    asked = (tmp_path / "asked").read_text().splitlines()
    assert "--resume" in asked[0]
    assert not any("--resume" in line for line in asked[1:])
