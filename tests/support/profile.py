"""How much random traffic the tests try: some by default, much more in `make test-more`."""

from __future__ import annotations

import os

IS_LARGE = os.environ.get("MQTWIN_TEST_PROFILE") == "large"
_SHARE = 5  # of the examples of the large profile, one in this many is tried by default
_MIN_EXAMPLES = 5


def examples(large: int) -> int:
    """Return the number of examples to try. large: those of the large profile."""
    return large if IS_LARGE else max(_MIN_EXAMPLES, large // _SHARE)
