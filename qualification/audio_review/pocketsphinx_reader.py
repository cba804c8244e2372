"""A recogniser program for `audio-review --recogniser`: PocketSphinx with its English model. Copied as it is into the
mounted directory, so it uses nothing of this project.

Small and old: it confuses many words even of clear speech, so its error rate only tells words from none.
"""

from __future__ import annotations

import json
import sys
import wave

import numpy as np
from pocketsphinx import Decoder
from scipy.signal import resample_poly


def main() -> None:
    """Answer each request on standard input."""
    for line in sys.stdin:
        request = json.loads(line)
        # A fresh decoder for each: it adapts to what it heard before, and answers must not depend on their order.
        decoder = Decoder(
            hmm="model/en-us", lm="model/en-us.lm.bin", dict="model/cmudict-en-us.dict", samprate=16_000,
            loglevel="FATAL",
        )  # fmt: skip
        print(json.dumps({"id": request["id"], "text": hear(decoder, request["wav"])}), flush=True)


def hear(decoder: Decoder, path: str) -> str:
    """The words of one 24 kHz mono 16-bit WAV."""
    with wave.open(path) as file:
        pcm = np.frombuffer(file.readframes(file.getnframes()), dtype="<i2")
    resampled = np.clip(np.rint(resample_poly(pcm.astype(np.float64), 2, 3)), -32_768, 32_767).astype("<i2")
    decoder.start_utt()
    decoder.process_raw(resampled.tobytes(), full_utt=True)
    decoder.end_utt()
    found = decoder.hyp()
    return found.hypstr if found else ""


if __name__ == "__main__":
    main()
