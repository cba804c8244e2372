"""The sampling rules once more, one row and one step at a time in plain Python doubles.

Written from the rules (penalty, suppression, temperature, top-k with ties, top-p, softmax, inverse of the cumulative
distribution), not from the engine's tensors; slow and obvious.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from itertools import accumulate

from engine.contract import StageSampling

NEVER = -math.inf


def penalised(logits: Sequence[float], seen: Collection[int], penalty: float) -> list[float]:
    """Each id already generated once or more becomes less likely by the same factor, whatever its sign."""
    changed = list(logits)
    for code in set(seen):
        changed[code] = logits[code] / penalty if logits[code] > 0 else logits[code] * penalty
    return changed


def probabilities(logits: Sequence[float], stage: StageSampling) -> list[float]:
    """What each id's chance is once temperature, top-k and top-p have acted."""
    scaled = [value / stage.temperature for value in logits]
    if 0 < stage.top_k < len(scaled):
        kth = sorted(scaled, reverse=True)[stage.top_k - 1]
        scaled = [value if value >= kth else NEVER for value in scaled]
    chances = softmax(scaled)
    if stage.top_p < 1.0:
        kept = nucleus(chances, stage.top_p)
        chances = softmax([value if code in kept else NEVER for code, value in enumerate(scaled)])
    return chances


def softmax(values: Sequence[float]) -> list[float]:
    best = max(values)
    weights = [math.exp(value - best) if value > NEVER else 0.0 for value in values]
    total = math.fsum(weights)
    return [weight / total for weight in weights]


def nucleus(chances: Sequence[float], top_p: float) -> set[int]:
    """The most probable ids, in order, until their mass reaches top_p: the id that reaches it is in."""
    kept: set[int] = set()
    mass = 0.0
    for code in sorted(range(len(chances)), key=lambda code: chances[code], reverse=True):
        if kept and mass >= top_p:
            break
        kept.add(code)
        mass += chances[code]
    return kept


def pick(chances: Sequence[float], uniform: float) -> int:
    """The id in whose slice of [0, 1) the uniform number falls, slices in id order."""
    reached = 0.0
    for code, chance in enumerate(chances):
        reached += chance
        if uniform < reached:
            return code
    return max(code for code, chance in enumerate(chances) if chance > 0)


def margin(chances: Sequence[float], uniform: float) -> float:
    """How far the uniform number is from the nearest slice border: closer than FP32 rounding decides nothing."""
    borders = list(accumulate(chances))[:-1]
    return min((abs(uniform - border) for border in borders), default=1.0)
