"""Mounted recognisers: what is refused, what they must answer, and that the hook measures words."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from qualification import schema
from qualification.audio_review import pocketsphinx_mount, recogniser
from qualification.audio_review.recogniser import Request
from qualification.audio_review.spelling import edits, spoken_characters, units
from qualification.clip import encode_wav
from qualification.digest import sha256_file
from qualification.errors import InputError
from tests.qualification.audio_review.sounds import TEXTS, silence, speech

ECHO = (
    "import json, sys\nfor line in sys.stdin:\n    print(json.dumps({'id': json.loads(line)['id'], 'text': 'hello'}))\n"
)


def mounted(root: Path, program: str = ECHO, **more: object) -> Path:
    """A directory with a recogniser of that program."""
    root.mkdir()
    (root / "run.py").write_text(program)
    document = {
        "schema": schema.urn("recogniser"), "name": "echo", "version": "1", "licence": "Apache-2.0",
        "source": "written here",
        "languages": [{"language": "en", "clean_error_rate": 0.1, "how": "said so, for a test"}],
        "command": ["{python}", "run.py"], "files": [{"path": "run.py", "sha256": sha256_file(root / "run.py")}],
        **more,
    }  # fmt: skip
    (root / "recogniser.json").write_text(json.dumps(document))
    return root


def _request(tmp_path: Path, name: str = "a") -> Request:
    (tmp_path / f"{name}.wav").write_bytes(encode_wav(silence(0.1).tobytes()))
    return Request(id=name, wav=tmp_path / f"{name}.wav", language="en")


def test_every_request_is_answered(tmp_path: Path) -> None:
    found = recogniser.mount(mounted(tmp_path / "echo"))
    assert found.hear([_request(tmp_path, "a"), _request(tmp_path, "b")]) == {"a": "hello", "b": "hello"}
    assert found.to_json()["manifest_sha256"] == sha256_file(tmp_path / "echo" / "recogniser.json")


@pytest.mark.parametrize(
    ("program", "words"),
    [
        ("raise SystemExit('out of memory')", "out of memory"),
        ("", "answered 0 of 1"),
        ("print('hello')", "not JSON"),
        ('print(\'{"id": "a", "text": 3}\')', "text"),
        (ECHO + "print(json.dumps({'id': 'a', 'text': 'again'}))\n", "twice"),
        (ECHO + "print(json.dumps({'id': 'other', 'text': 'more'}))\n", "answered 2 of 1"),
    ],
)
def test_a_program_that_does_not_answer_is_named(program: str, words: str, tmp_path: Path) -> None:
    found = recogniser.mount(mounted(tmp_path / "bad", program))
    with pytest.raises(InputError, match=words):
        found.hear([_request(tmp_path)])


def test_a_program_that_hangs_or_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"longer than 0\.3 s"):
        recogniser.mount(mounted(tmp_path / "slow", "import time; time.sleep(30)")).hear([_request(tmp_path)], 0.3)
    with pytest.raises(InputError, match="cannot be started"):
        recogniser.mount(mounted(tmp_path / "none", command=["no-such-program"])).hear([_request(tmp_path)])


def test_a_directory_that_is_not_its_manifest_is_refused(tmp_path: Path) -> None:
    root = mounted(tmp_path / "echo")
    (root / "more.bin").write_bytes(b"1")
    with pytest.raises(InputError, match=r"more\.bin"):
        recogniser.mount(root)
    (root / "more.bin").unlink()
    (root / "run.py").write_text(ECHO + "\n")
    with pytest.raises(InputError, match="not the bytes"):
        recogniser.mount(root)
    (root / "run.py").unlink()
    with pytest.raises(InputError, match=r"run\.py"):
        recogniser.mount(root)
    with pytest.raises(InputError, match=r"recogniser\.json"):
        recogniser.mount(tmp_path)


def test_words_are_counted_as_written() -> None:
    assert units("It’s 5 o'clock — ISN'T it?", "en") == ("it's", "5", "o'clock", "isn't", "it")
    assert units("朝の、駅前。", "ja") == ("朝", "の", "駅", "前")
    assert edits(["the", "cat", "sat"], ["the", "bad", "cat", "sat"]) == 1
    assert edits("abc", "") == 3
    assert edits("kitten", "sitting") == 3
    assert spoken_characters("Cà phê, 2 ly!") == 8
    assert spoken_characters("e\N{COMBINING ACUTE ACCENT}t") == 2


@pytest.mark.slow
def test_pocketsphinx_tells_speech_from_other_words_and_from_silence(tmp_path: Path) -> None:
    """The hook for real: on clean speech of a synthesiser about half of the words are right, elsewhere next to none."""
    pytest.importorskip("pocketsphinx")
    found = recogniser.mount(pocketsphinx_mount.write(tmp_path / "pocketsphinx"))
    requests = []
    for number in range(2):
        wav = tmp_path / f"{number}.wav"
        wav.write_bytes(encode_wav(speech(number, 12).tobytes()))
        requests.append(Request(id=str(number), wav=wav, language="en"))
    heard = found.hear([*requests, _request(tmp_path, "silence")])
    said = [units(text, "en") for text in TEXTS[:2]]
    right = sum(edits(said[at], units(heard[str(at)], "en")) for at in range(2)) / sum(map(len, said))
    wrong = sum(edits(said[at], units(heard[str(1 - at)], "en")) for at in range(2)) / sum(map(len, said))
    assert right < 0.6
    assert wrong > 0.85
    assert heard["silence"] == ""
    assert found.hear(requests[1:]) == {"1": heard["1"]}
