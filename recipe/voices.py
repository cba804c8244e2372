"""The voices that the model learns to follow, and the words that describe them.

Eighteen voices: gender x pitch x rate, each an espeak-ng variant, pitch and speed. Eight templates with synonyms
describe them; manner
words (warm, clear) carry no information and are there so that the model learns to read past them. A description may
leave pitch or rate unsaid.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from enum import StrEnum


class Gender(StrEnum):
    MALE = "male"
    FEMALE = "female"


class Level(StrEnum):
    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"


@dataclass(frozen=True, kw_only=True)
class Voice:
    """One of the eighteen voices. `rate` LOW is slow, HIGH is fast."""

    gender: Gender
    pitch: Level
    rate: Level

    @property
    def variant(self) -> str:
        """The espeak-ng voice variant."""
        return "m3" if self.gender is Gender.MALE else "f2"

    @property
    def espeak_pitch(self) -> int:
        """espeak-ng pitch, 0 to 100."""
        return {Level.LOW: 25, Level.MEDIUM: 50, Level.HIGH: 80}[self.pitch]

    @property
    def words_per_minute(self) -> int:
        return {Level.LOW: 135, Level.MEDIUM: 170, Level.HIGH: 215}[self.rate]

    @property
    def index(self) -> int:
        """Position in `VOICES`."""
        return VOICES.index(self)


VOICES = tuple(Voice(gender=gender, pitch=pitch, rate=rate) for gender in Gender for pitch in Level for rate in Level)

MANNERS = (
    "calm", "warm", "clear", "friendly", "gentle", "natural", "pleasant", "confident", "kind", "serious",
    "cheerful", "steady",
    "bright", "soft", "relaxed", "professional", "lively", "adult", "young", "mature",
)  # fmt: skip
CLOSINGS = (
    "with clear diction", "confident and clear", "and sounds natural", "like a narrator", "with a steady tone",
    "and sounds friendly", "in a relaxed manner", "as in an audiobook", "and sounds cheerful", "measured and relaxed",
)  # fmt: skip
NOUNS = {
    Gender.MALE: ("male voice", "man's voice", "masculine voice", "male speaker", "man", "male narrator"),
    Gender.FEMALE: ("female voice", "woman's voice", "feminine voice", "female speaker", "woman", "female narrator"),
}
PITCHES = {
    Level.LOW: (
        "a low pitch",
        "a deep pitch",
        "low pitch",
        "a low, deep tone",
        "a rather low pitch",
        "a deep, low pitch",
    ),
    Level.MEDIUM: ("a medium pitch", "medium pitch", "an average pitch", "a normal pitch", "a moderate pitch"),
    Level.HIGH: ("a high pitch", "high pitch", "a rather high pitch", "a light, high pitch", "a high tone"),
}
PACES = {
    Level.LOW: (
        "a slow pace",
        "a slow, gentle pace",
        "a slow and gentle pace",
        "a slow, unhurried pace",
        "a leisurely pace",
    ),
    Level.MEDIUM: ("a medium pace", "a medium, steady pace", "an average pace", "a normal pace", "a moderate pace"),
    Level.HIGH: ("a fast pace", "a fast, lively pace", "a quick pace", "a rapid pace", "a fast and energetic pace"),
}
ADVERBS = {
    Level.LOW: ("slowly", "slowly and clearly", "slowly and kindly", "very calmly and slowly", "unhurriedly"),
    Level.MEDIUM: ("at a medium pace", "at a normal speed", "at a moderate speed", "at an average speed"),
    Level.HIGH: ("quickly", "fast", "rapidly", "quickly and clearly", "fast and energetically"),
}
TEMPLATES = (
    "A {manner} {noun} with {pitch}, speaking {adverb}.",
    "A {noun} of {pitch}, speaking at {pace} {closing}.",
    "A {noun} with {pitch} who speaks {adverb} {closing}.",
    "A {manner} {noun} with {pitch} and {pace}.",
    "{pitch}, {pace}: a {manner} {noun}.",
    "Speak {adverb}, as a {manner} {noun} with {pitch}.",
    "A {manner}, {second} {noun}, {pitch}, {pace}, {closing}.",
    "A {noun}. {pitch}. {pace}.",
)
UNSAID_SHARE = 0.1
PITCHLESS = "A {manner} {noun}, speaking {adverb} {closing}."
PACELESS = "A {manner}, {second} {noun} with {pitch} {closing}."


def random_voice(rng: random.Random) -> Voice:
    return rng.choice(VOICES)


def describe(voice: Voice, rng: random.Random) -> str:
    """A description of `voice` in English, one sentence or a few phrases."""
    chance = rng.random()
    template = PITCHLESS if chance < UNSAID_SHARE else PACELESS if chance < 2 * UNSAID_SHARE else rng.choice(TEMPLATES)
    first, second = rng.sample(MANNERS, 2)
    text = template.format(
        manner=first,
        second=second,
        noun=rng.choice(NOUNS[voice.gender]),
        pitch=rng.choice(PITCHES[voice.pitch]),
        pace=rng.choice(PACES[voice.rate]),
        adverb=rng.choice(ADVERBS[voice.rate]),
        closing=rng.choice(CLOSINGS),
    )
    return ". ".join(part[0].upper() + part[1:] for part in text.split(". "))


def nearest_voice(description: str) -> Voice:
    """The voice that a free description asks for, by its key words: female unless it says male or man, medium where
    it says nothing."""
    words = set(description.lower().replace(",", " ").replace(".", " ").replace("'s", " ").split())
    male = bool(words & {"male", "man", "masculine", "boy"})
    low, high = bool(words & {"low", "deep"}), bool(words & {"high", "light"})
    slow = bool(words & {"slow", "slowly", "unhurried", "unhurriedly", "leisurely"})
    fast = bool(words & {"fast", "quick", "quickly", "rapid", "rapidly"})
    return Voice(gender=Gender.MALE if male else Gender.FEMALE, pitch=_level(low, high), rate=_level(slow, fast))


def _level(low: bool, high: bool) -> Level:
    return Level.MEDIUM if low == high else Level.LOW if low else Level.HIGH
