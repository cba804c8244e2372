"""Settings: one table for flags, variables, checks and documentation."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import pytest

from engine.errors import UsageError
from engine.server import cli
from engine.server.settings import ServerSettings, as_table, settings_from
from tests.engine.server.fake_engine import FakeEngine

DOCUMENT = Path(__file__).parents[3] / "docs" / "server.md"


def parsed(*flags: str, **environ: str) -> ServerSettings:
    parser = argparse.ArgumentParser()
    cli.add_arguments(parser)
    return settings_from(parser.parse_args(flags), environ)


def test_flag_wins_over_variable_wins_over_default() -> None:
    assert parsed().port == 8000
    assert parsed(ASSAY_PORT="9000").port == 9000
    assert parsed("--port", "9001", ASSAY_PORT="9000").port == 9001
    assert parsed("--hardened").hardened
    assert parsed(ASSAY_HARDENED="true").hardened
    assert not parsed("--no-hardened", ASSAY_HARDENED="1").hardened


@pytest.mark.parametrize(
    ("flag", "value"),
    [
        ("--port", "65536"),
        ("--port", "-1"),
        ("--port", "http"),
        ("--host", ""),
        ("--max-text-bytes", "0"),
        ("--max-text-bytes", "32769"),
        ("--max-voice-description-bytes", "4097"),
        ("--max-duration-seconds", "0.05"),
        ("--slow-reader-seconds", "0"),
        ("--grace-seconds", "21"),
        ("--grace-seconds", "nan"),
        ("--log-level", "loud"),
        ("--cors-origins", "app.example"),
        ("--cors-origins", "https://app.example/"),
        ("--cors-origins", "https://a.example, https://b.example/page"),
    ],
)
def test_wrong_values_are_named(flag: str, value: str) -> None:
    with pytest.raises(UsageError, match=flag.removeprefix("--").replace("-", "[-_]")):
        parsed(flag, value)


def test_wrong_variable_is_named() -> None:
    with pytest.raises(UsageError, match="ASSAY_HARDENED"):
        parsed(ASSAY_HARDENED="maybe")


def test_print_config_shows_settings_and_no_token(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ASSAY_AUTH_TOKEN", "very-secret")
    parser = argparse.ArgumentParser()
    cli.add_arguments(parser)
    assert cli.run(parser.parse_args(["--print-config", "--port", "1234"]), FakeEngine) == 0
    printed = capsys.readouterr().out
    assert json.loads(printed)["port"] == 1234
    assert json.loads(printed)["auth_token"] == "set"
    assert "very-secret" not in printed


def test_token_file(tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text("abc\n")
    assert ServerSettings(auth_token_file=str(path)).auth_token() == "abc"
    path.write_text("\n")
    with pytest.raises(UsageError, match="empty"):
        ServerSettings(auth_token_file=str(path)).auth_token()
    with pytest.raises(UsageError, match="readable"):
        ServerSettings(auth_token_file=str(tmp_path / "absent")).auth_token()
    for wrong in ("two words", "schlüssel"):
        path.write_text(wrong)
        with pytest.raises(UsageError, match="ASCII"):
            ServerSettings(auth_token_file=str(path)).auth_token()


def test_token_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ASSAY_AUTH_TOKEN", raising=False)
    assert ServerSettings().auth_token() is None
    monkeypatch.setenv("ASSAY_AUTH_TOKEN", "abc\n")
    assert ServerSettings().auth_token() == "abc"
    monkeypatch.setenv("ASSAY_AUTH_TOKEN", " ")  # a secret that did not arrive must not open the door
    with pytest.raises(UsageError, match="ASSAY_AUTH_TOKEN is empty"):
        ServerSettings().auth_token()


def test_origins_are_taken_as_browsers_write_them() -> None:
    assert parsed("--cors-origins", "*").cors_origins == "*"
    assert parsed("--cors-origins", "https://a.example:8443, http://localhost:3000")


def test_documentation_holds_the_table() -> None:
    assert as_table() in DOCUMENT.read_text("utf-8")
