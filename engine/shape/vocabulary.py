"""The shape tier's text tokenizer: one id a byte, and the prompt's role words as single tokens at their published ids.

It stands in the published id space (bytes 0..255 in the published order, so a newline is 198). A text has about four
times as many ids as under the published tokenizer, so prefill is measured on longer prompts than a listener would
cause.
"""

from __future__ import annotations

ROLE_WORDS = {"user": 872, "assistant": 77_091}
FIRST_PIECE_ID = 256


def byte_symbols() -> list[str]:
    """The 256 byte symbols of byte-level BPE in published order: printable bytes first, then the rest moved beyond
    255.
    """
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in printable]
    return [chr(byte) for byte in printable] + [chr(256 + index) for index in range(len(others))]


def byte_vocabulary() -> tuple[dict[str, int], list[tuple[str, str]]]:
    """Vocabulary and merges of the byte-level tokenizer."""
    vocabulary = {symbol: index for index, symbol in enumerate(byte_symbols())}
    merges: list[tuple[str, str]] = []
    for word, number in ROLE_WORDS.items():
        for size in range(2, len(word) + 1):
            merges.append((word[: size - 1], word[size - 1]))
            vocabulary.setdefault(word[:size], number if size == len(word) else FIRST_PIECE_ID + len(merges))
    return vocabulary, merges
