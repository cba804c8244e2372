"""A failed build is named by its kind, from the builder's own account."""

from __future__ import annotations

import pytest

from qualification.container.build import fault_of
from qualification.container.faults import FaultCode


@pytest.mark.parametrize(
    ("account", "code", "words"),
    [
        ("Step 3\nbase_by_tag: BASE='debian:12' can move", FaultCode.BASE_BY_TAG, "can move"),
        ("weights_differ: no model\n  model.safetensors: different", FaultCode.WEIGHTS_DIFFER, "model.safetensors"),
        ("wheel_hash_differs: pip-1.whl has 1, the lock says 2", FaultCode.WHEEL_HASH_DIFFERS, "the lock says"),
        ("ERROR: THESE PACKAGES DO NOT MATCH THE HASHES FROM THE FILE", FaultCode.WHEEL_HASH_DIFFERS, "pip refused"),
        ("image_malformed: the runtime stage is not\n  /bin/sh is a tool", FaultCode.IMAGE_MALFORMED, "/bin/sh"),
        ("Step 9 : RUN something", FaultCode.BUILD_FAILED, "returned a non-zero code"),
    ],
)
def test_kinds(account: str, code: FaultCode, words: str) -> None:
    fault = fault_of(account, "returned a non-zero code: 1", "verify")
    assert fault.code is code
    assert words in str(fault)
