"""The command line's frame: commands, help, exit codes."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from engine import __main__, say
from engine.__main__ import main


@pytest.mark.parametrize("argv", [[], ["sing"], ["say"], ["say", "--voice", "Calm."]])
def test_a_wrong_command_line_exits_with_two(argv: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main(argv)
    assert stop.value.code == 2
    assert "usage: python -m engine" in capsys.readouterr().err


def test_help_names_every_setting_with_its_variable(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main(["say", "--help"])
    assert stop.value.code == 0
    shown = capsys.readouterr().out
    for word in ("--max-positions", "ASSAY_MAX_POSITIONS", "--allow-symlinks", "ASSAY_DEVICE"):
        assert word in shown


@pytest.mark.parametrize("argv", [["--help"], ["serve", "--print-config"], ["say", "--nonsense"], ["bench", "--help"]])
def test_what_needs_no_network_does_not_wait_for_torch(argv: list[str]) -> None:
    text = "import sys; from engine.__main__ import main\ntry: main(sys.argv[1:])\nexcept SystemExit: pass\n"
    text += "sys.exit('torch was imported' if 'torch' in sys.modules else 0)"
    done = subprocess.run([sys.executable, "-c", text, *argv], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr


def test_a_bench_without_an_accelerator_says_what_to_use(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "--device", "cpu"]) == 5
    assert "on a CPU use `say`" in capsys.readouterr().err


def test_an_interrupt_exits_with_130(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(_arguments: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(say, "run", interrupted)
    assert __main__.main(["say", "--voice", "v", "-o", str(tmp_path / "x.wav")]) == 130
    assert "interrupted" in capsys.readouterr().err


def test_as_a_module_it_exits_with_the_code_of_main(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "engine", "say", "--voice", "v", "--text", "x", "-o", str(tmp_path / "x.wav")]
    done = subprocess.run(
        [*command, "--model", str(tmp_path)], capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 3
    assert "config.json is missing" in done.stderr


IMPORTED = """
import contextlib, sys
from engine.__main__ import main
with contextlib.suppress(SystemExit):
    main(sys.argv[1:])
print(sorted({"torch", "soundfile", "numpy"} & set(sys.modules)), file=sys.stderr)
"""


@pytest.mark.parametrize(
    "argv",
    [
        ["--help"],
        ["sing"],
        ["serve", "--help"],
        ["serve", "--print-config"],
        ["serve", "--port", "no"],
        ["serve", "--no-such-flag"],
        ["say", "--help"],
        ["say"],
    ],
)
def test_help_and_usage_errors_wait_for_no_heavy_library(argv: list[str]) -> None:
    done = subprocess.run(
        [sys.executable, "-c", IMPORTED, *argv], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stderr.splitlines()[-1] == "[]"


def test_every_command_is_there_under_its_module() -> None:
    for module, _ in __main__.COMMANDS.values():
        found = import_module(module)
        assert callable(found.add_arguments)
        assert callable(found.run)


def test_the_configuration_in_force_has_both_parts(capsys: pytest.CaptureFixture[str]) -> None:
    assert __main__.main(["serve", "--print-config", "--threads", "2", "--port", "0"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert (shown["port"], shown["engine"]["threads"], shown["engine"]["device"]) == (0, 2, "auto")
