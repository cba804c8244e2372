"""The real Qwen vocabulary, rebuilt from the tiktoken ranks that the `dashscope` package carries, gives the published files and ids."""

from __future__ import annotations

import base64
import hashlib
import importlib.util
import json
from pathlib import Path

import pytest
import transformers

from engine.tokenizer import TextTokenizer

pytestmark = pytest.mark.parity

VOCAB_SHA256 = "ca10d7e9fb3ed18575dd1e277a2579c16d108e32f27439684afa0e10b1440910"
MERGES_SHA256 = "599bab54075088774b1733fde865d5bd747cbcc7a547c5bc12610e874e26f5e3"
SAMPLES = (
    "user\nA calm, warm adult male voice, measured and relaxed, with clear diction.",
    "Größe: 3,5 km — und 42 Äpfel!",
    "你好，世界。今天是2026年12月1日。",
    "こんにちは、元気ですか？",
    "안녕하세요, 반갑습니다.",
    "  leading and trailing  \n\n",
    "naïve café e\u0301 👩‍👩‍👧 🎉",
    "<tts_pad> is only text here",
    "مرحبا بالعالم १२३ नमस्ते",
)


def _byte_symbols() -> dict[int, str]:
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in plain]
    return {byte: chr(byte) for byte in plain} | {byte: chr(256 + index) for index, byte in enumerate(others)}


def _split(token: bytes, ranks: dict[bytes, int]) -> tuple[bytes, bytes]:
    """The two parts that a token was merged from: apply all merges of lower rank to its bytes."""
    parts, limit = [bytes([byte]) for byte in token], ranks[token]
    while len(parts) > 2:
        candidates = [(ranks.get(parts[i] + parts[i + 1], limit), i) for i in range(len(parts) - 1)]
        _, best = min(candidates)
        parts[best : best + 2] = [parts[best] + parts[best + 1]]
    return parts[0], parts[1]


@pytest.fixture(scope="module")
def vocabulary(tmp_path_factory: pytest.TempPathFactory) -> Path:
    spec = importlib.util.find_spec("dashscope")
    assert spec is not None and spec.submodule_search_locations, "the parity session installs dashscope"
    source = next(Path(spec.submodule_search_locations[0]).rglob("qwen.tiktoken"))
    ranks = {
        base64.b64decode(token): int(rank) for token, rank in (line.split() for line in source.read_text().splitlines())
    }
    symbols = _byte_symbols()

    def spell(token: bytes) -> str:
        return "".join(symbols[byte] for byte in token)

    directory = tmp_path_factory.mktemp("qwen")
    vocab = {spell(token): rank for token, rank in ranks.items()}
    text = json.dumps(vocab, ensure_ascii=False, separators=(",", ":"))
    (directory / "vocab.json").write_text(text, "utf-8")
    merges = [" ".join(map(spell, _split(token, ranks))) for token in ranks if len(token) > 1]
    (directory / "merges.txt").write_text("".join(f"{merge}\n" for merge in merges), "utf-8")
    return directory


def test_rebuilt_files_are_the_published_ones(vocabulary: Path) -> None:
    assert hashlib.sha256((vocabulary / "vocab.json").read_bytes()).hexdigest() == VOCAB_SHA256
    assert hashlib.sha256((vocabulary / "merges.txt").read_bytes()).hexdigest() == MERGES_SHA256


def test_published_vector(vocabulary: Path) -> None:
    ids = TextTokenizer.from_directory(vocabulary).encode(SAMPLES[0])
    assert ids == [872, 198, 32, 19300, 11, 8205, 6683, 8593, 7743, 11, 16878, 323, 30367, 11, 448, 2797, 294, 2479, 13]


def test_same_ids_as_the_reference_tokenizer(vocabulary: Path) -> None:
    reference = transformers.Qwen2TokenizerFast(str(vocabulary / "vocab.json"), str(vocabulary / "merges.txt"))
    ours = TextTokenizer.from_directory(vocabulary)
    for sample in SAMPLES:
        assert ours.encode(sample) == reference(sample, add_special_tokens=False)["input_ids"], sample
