"""How long tests are. Random traffic: some by default, more in `make test-more`, little in `make coverage`."""

from __future__ import annotations

import os

_PROFILE = os.environ.get("MQTWIN_TEST_PROFILE", "")
CPU_LIMIT_S = 4.0  # of a test of `make test`, without its fixtures; a longer one is nightly
IS_LARGE = _PROFILE == "large"
_SHARE = {"large": 1, "small": 50}.get(_PROFILE, 5)  # of the examples of the large profile, one in this many is tried
_MIN_EXAMPLES = 2 if _PROFILE == "small" else 5


def examples(large: int) -> int:
    """Return the number of examples to try. large: those of the large profile."""
    return large if IS_LARGE else max(_MIN_EXAMPLES, large // _SHARE)
