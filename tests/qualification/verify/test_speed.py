"""The verifier's time for a bundle of the size of a release."""

from __future__ import annotations

import pytest

from tests.qualification.verify import release_sized
from tests.qualification.verify.verifier_figures import measure

LIMIT_SECONDS = 10.0


@pytest.mark.slow
def test_a_release_sized_bundle_is_verified_within_ten_seconds() -> None:
    figures = measure(repeats=1)
    assert figures["answer"] == "qualified"
    assert figures["requests"] >= release_sized.REQUESTS
    assert figures["rounds"] >= release_sized.ROUNDS
    assert figures["audio_files"] > 2_500
    assert max(figures["cpu_seconds"]) < LIMIT_SECONDS, figures
