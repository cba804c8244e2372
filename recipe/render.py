"""Speech of espeak-ng 1.52 at 24 kHz, through its library (PyPI `espeakng-loader` brings library and voices) and
`ctypes`.

The library is not thread-safe and holds one voice at a time: one process, one `Espeak`. Output is resampled from
22,050 Hz, turned down so that a codec
has headroom, cut to the speech and closed with a little silence to whole codec frames: an utterance always ends in
silence, which makes its end learnable.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import lru_cache
from pathlib import Path

import espeakng_loader
import numpy as np
import numpy.typing as npt
from scipy.signal import resample_poly

from engine.contract import SAMPLE_RATE_HZ, SAMPLES_PER_FRAME
from recipe.corpus import RENDERED, Samples, read_sentences, write_shard
from recipe.errors import RecipeError
from recipe.languages import BY_CODE
from recipe.sentence import Sentence
from recipe.voices import Voice

ESPEAK_RATE_HZ = 22_050
UP, DOWN = 160, 147  # 24,000 / 22,050
GAIN = 0.8  # espeak-ng peaks near full scale
SILENCE = 0.004  # of full scale; below is no speech
LEAD_SAMPLES, TRAIL_SAMPLES = SAMPLE_RATE_HZ // 50, SAMPLE_RATE_HZ // 10  # 20 ms before, at least 100 ms after
SHARD_SENTENCES = 250

# Constants of espeak-ng's speak_lib.h.
AUDIO_OUTPUT_SYNCHRONOUS, RATE, PITCH, CHARS_UTF8, POS_CHARACTER = 2, 1, 3, 1, 1
Callback = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_short), ctypes.c_int, ctypes.c_void_p)


class Espeak:
    """The espeak-ng library in this process."""

    def __init__(self) -> None:
        self._library = ctypes.CDLL(espeakng_loader.get_library_path())
        data = espeakng_loader.get_data_path().encode()
        rate = self._library.espeak_Initialize(AUDIO_OUTPUT_SYNCHRONOUS, 0, data, 0)
        if rate != ESPEAK_RATE_HZ:
            raise RecipeError(
                f"espeak-ng started with {rate} Hz instead of {ESPEAK_RATE_HZ}; reinstall espeakng-loader"
            )
        self._chunks: list[npt.NDArray[np.int16]] = []
        self._callback = Callback(self._receive)  # kept alive as long as the library
        self._library.espeak_SetSynthCallback(self._callback)

    def speak(self, spoken: str, language: str, voice: Voice) -> npt.NDArray[np.float32]:
        """Raw output at 22,050 Hz, full scale 1.

        Raises:
            RecipeError: espeak-ng has no such voice, or says nothing.
        """
        name = f"{BY_CODE[language].voice}+{voice.variant}"
        if self._library.espeak_SetVoiceByName(name.encode()) != 0:
            raise RecipeError(f"espeak-ng has no voice {name!r}; reinstall espeakng-loader")
        self._library.espeak_SetParameter(PITCH, voice.espeak_pitch, 0)
        self._library.espeak_SetParameter(RATE, voice.words_per_minute, 0)
        self._chunks.clear()
        text = spoken.encode()
        self._library.espeak_Synth(text, len(text) + 1, 0, POS_CHARACTER, 0, CHARS_UTF8, None, None)
        self._library.espeak_Synchronize()
        if not self._chunks:
            raise RecipeError(f"espeak-ng has nothing to say for {spoken!r}")
        return np.concatenate(self._chunks).astype(np.float32) / np.float32(32_768)

    def _receive(self, samples: ctypes._Pointer[ctypes.c_short], count: int, _events: int | None) -> int:
        if samples and count > 0:
            self._chunks.append(np.ctypeslib.as_array(samples, (count,)).copy())
        return 0


def finish(raw: npt.NDArray[np.float32]) -> Samples:
    """Raw espeak-ng output to 24 kHz PCM: resampled, turned down, cut to the speech, padded to whole frames of 1,920
    samples.

    Raises:
        RecipeError: no sample is above the silence threshold.
    """
    wave = np.asarray(resample_poly(raw, UP, DOWN), dtype=np.float32) * GAIN
    loud = np.flatnonzero(np.abs(wave) > SILENCE)
    if not len(loud):
        raise RecipeError("espeak-ng rendered silence")
    wave = wave[max(0, loud[0] - LEAD_SAMPLES) : loud[-1] + 1]
    total = -(-(len(wave) + TRAIL_SAMPLES) // SAMPLES_PER_FRAME) * SAMPLES_PER_FRAME
    pcm = np.zeros(total, dtype=np.int16)
    pcm[: len(wave)] = np.rint(np.clip(wave, -1.0, 1.0) * 32_767)
    return pcm


def render(sentence: Sentence) -> Samples:
    """One sentence in its voice, as PCM at 24 kHz."""
    return finish(_espeak().speak(sentence.spoken, sentence.language, sentence.voice))


def render_all(work: Path, processes: int, report: Callable[[str], None]) -> None:
    """Render every sentence of the working directory into audio shards, in `processes` processes."""
    items = read_sentences(work)
    pieces = [(work, start, items[start : start + SHARD_SENTENCES]) for start in range(0, len(items), SHARD_SENTENCES)]
    samples = 0
    with ProcessPoolExecutor(max_workers=processes) as pool:
        pending = [pool.submit(_render_shard, *piece) for piece in pieces]
        for done, future in enumerate(as_completed(pending), start=1):
            samples += future.result()
            if done % max(1, len(pieces) // 10) == 0 or done == len(pieces):
                report(f"{done}/{len(pieces)} shards, {samples / SAMPLE_RATE_HZ / 3_600:.2f} hours")
    (work / RENDERED).touch()


def default_processes() -> int:
    return max(1, len(os.sched_getaffinity(0)))


def _render_shard(work: Path, first: int, items: list[Sentence]) -> int:
    return write_shard(work, first, [render(item) for item in items])


@lru_cache(maxsize=1)
def _espeak() -> Espeak:
    return Espeak()
