"""The command line speaks, closes with one line, and turns every refusal into its exit code and one line of error."""

from __future__ import annotations

import io
import re
from pathlib import Path

import pytest
import soundfile

from engine.__main__ import main
from engine.contract import SAMPLE_RATE_HZ, SAMPLES_PER_FRAME
from engine.runner import Runner

CLOSING = re.compile(
    r"(\S+): (\d+\.\d\d) s of audio in \d+\.\d\d s, RTF \d+\.\d{3}, stop reason (stop|length), seed (\d+)\n"
)


def say(directory: Path, output: Path, *flags: str) -> int:
    return main(
        [
            "say", "--model", str(directory), "--device", "cpu", "--max-positions", "200", "--max-frames", "60",
            "--voice", "Calm.", "-o", str(output), *flags,
        ]
    )  # fmt: skip


def test_text_becomes_a_wav_file_and_a_closing_line(
    quick_directory: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "said.wav"
    assert say(quick_directory, output, "--text", "Hello.", "--seed", "7", "--seconds", "0.56") == 0
    closing = CLOSING.fullmatch(capsys.readouterr().out)
    assert closing is not None
    assert (closing[1], closing[4]) == (str(output), "7")
    samples, rate = soundfile.read(output, dtype="int16")
    assert rate == SAMPLE_RATE_HZ
    assert samples.ndim == 1
    assert samples.size % SAMPLES_PER_FRAME == 0
    assert 2 * SAMPLES_PER_FRAME <= samples.size <= 7 * SAMPLES_PER_FRAME
    assert float(closing[2]) == pytest.approx(samples.size / rate, abs=0.005)
    assert (samples.size == 7 * SAMPLES_PER_FRAME) or closing[3] == "stop"


@pytest.mark.parametrize("flags", [(), ("--text", "-")])
def test_text_comes_from_standard_input(
    quick_directory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, flags: tuple[str, ...]
) -> None:
    outputs = [tmp_path / "piped.wav", tmp_path / "flag.wav"]
    monkeypatch.setattr("sys.stdin", io.StringIO("Hello.\n"))
    common = ("--seed", "7", "--seconds", "0.3")
    assert say(quick_directory, outputs[0], *common, *flags) == 0
    assert say(quick_directory, outputs[1], *common, "--text", "Hello.") == 0
    assert outputs[0].read_bytes() == outputs[1].read_bytes()


def test_a_seed_is_drawn_and_printed_and_gives_the_same_file_again(
    quick_directory: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first, again = tmp_path / "first.wav", tmp_path / "again.wav"
    assert say(quick_directory, first, "--text", "Hello.", "--seconds", "0.5") == 0
    closing = CLOSING.fullmatch(capsys.readouterr().out)
    assert closing is not None
    assert say(quick_directory, again, "--text", "Hello.", "--seconds", "0.5", "--seed", closing[4]) == 0
    assert first.read_bytes() == again.read_bytes()


def test_greedy_does_not_depend_on_the_seed(quick_directory: Path, tmp_path: Path) -> None:
    outputs = [tmp_path / f"{seed}.wav" for seed in (1, 2)]
    for seed, output in enumerate(outputs):
        assert (
            say(quick_directory, output, "--text", "Hello.", "--seconds", "0.3", "--greedy", "--seed", str(seed)) == 0
        )
    assert outputs[0].read_bytes() == outputs[1].read_bytes()


@pytest.mark.parametrize(
    ("flags", "code", "words"),
    [
        (("--text", " "), 4, "text is empty"),
        (("--text", "x" * 300), 4, "shorten the text"),
        (("--text", "x", "--language", "klingon"), 4, "klingon"),
        (("--text", "x", "--language", "italian"), 4, "no id for language"),
        (("--text", "x", "--seed", "-1"), 4, "seed"),
        (("--text", "x", "--seconds", "0"), 2, "--seconds"),
        (("--text", "x", "--seconds", "nan"), 2, "--seconds"),
        (("--text", "x", "--seconds", "inf"), 2, "--seconds"),
        (("--text", "x", "--max-frames", "0"), 2, "frame"),
        (("--text", "x", "--device", "toaster"), 2, "toaster"),
        (("--text", "x", "--model", "/nowhere"), 3, "/nowhere"),
        (("--text", "x", "--device", "cuda:99"), 5, "cuda:99"),
        (("--text", "x", "-o", "/nowhere/said.wav"), 2, "-o"),
        (("--text", "x", "-o", "/"), 2, "-o"),
    ],
)
def test_a_refusal_is_one_line_on_standard_error_and_its_exit_code(
    quick_directory: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    flags: tuple[str, ...],
    code: int,
    words: str,
) -> None:
    output = tmp_path / "said.wav"
    assert say(quick_directory, output, *flags) == code
    shown = capsys.readouterr()
    lines = [line for line in shown.err.splitlines() if line.strip()]
    assert lines[-1].startswith("error: ")
    assert words in lines[-1]
    assert "Traceback" not in shown.err
    assert shown.out == ""
    assert not output.exists()


def test_standard_input_that_is_no_text_is_a_usage_error(
    quick_directory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"\xff\xfe\xff"), encoding="utf-8"))
    assert say(quick_directory, tmp_path / "said.wav") == 2
    assert "not utf-8 text" in capsys.readouterr().err


def test_a_fault_of_the_engine_leaves_no_file_and_exit_code_one(
    quick_directory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    original, calls = Runner.begin_step, 0

    def fails_late(runner: Runner, advance: list[bool]) -> None:
        nonlocal calls
        calls += 1
        if calls == 10:  # after the warm-up's eight
            raise RuntimeError("device fault")
        original(runner, advance)

    monkeypatch.setattr(Runner, "begin_step", fails_late)
    output = tmp_path / "said.wav"
    assert say(quick_directory, output, "--text", "Hello.", "--seed", "7") == 1
    assert "no audio" in capsys.readouterr().err
    assert not output.exists()


def test_a_file_that_cannot_be_written_is_named(
    quick_directory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def full(*_arguments: object, **_options: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    assert say(quick_directory, tmp_path / "said.wav", "--text", "Hello.", "--seconds", "0.1") == 2
    assert "said.wav cannot be written" in capsys.readouterr().err
