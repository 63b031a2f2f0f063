"""Words of a million letters in an administrator's text: read, or refused in one line, in linear time."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from twin.estate.errors import did_you_mean

Refused = Callable[..., str]

GROUP = 'schema = 1\n[queue_sharing_group.QSG1]\nqueue_managers = ["QM01"]\n'
CFRM = GROUP + '[[import]]\ncfrm = "a.txt"\n'
MQSC = GROUP + '[[import]]\nmqsc = "a.txt"\nqueue_sharing_group = "QSG1"\n'
LONG = "X" * 1_500_000
SECONDS = 2.0  # of work; the square of the letters takes many times as long


TEXTS = {
    "MQSC verb": (MQSC, LONG),
    "MQSC object": (MQSC, f"DEFINE {LONG}"),
    "MQSC keyword": (MQSC, f"DEFINE QLOCAL(A) {LONG}(B)"),
    "MQSC name": (MQSC, f"DEFINE QLOCAL({LONG})"),
    "MQSC value": (MQSC, f"DEFINE QLOCAL(A) CFSTRUCT({LONG})"),
    "MQSC like": (MQSC, f"DEFINE QLOCAL(A) LIKE({LONG})"),
    "CFRM statement": (CFRM, LONG),
    "CFRM value": (CFRM, f"DATA TYPE(CFRM)\nSTRUCTURE NAME(QSG1APP1) SIZE({LONG})"),
    "CFRM keyword": (CFRM, f"DATA TYPE(CFRM)\nSTRUCTURE NAME(QSG1APP1) SIZE(1) {LONG}(1)"),
    "CFRM comments": (CFRM, "/*" * 750_000),
}


@pytest.mark.parametrize("name", TEXTS)
def test_a_long_word_takes_linear_time(refused: Refused, name: str) -> None:
    toml, text = TEXTS[name]
    began = time.process_time()
    message = refused(toml, **{"a.txt": text + "\n"})
    assert time.process_time() - began < SECONDS
    assert len(message) < 2_100


def test_a_long_word_is_like_no_short_one() -> None:
    assert did_you_mean("QLOCALL", ["QLOCAL"]) == "; did you mean QLOCAL?"
    assert did_you_mean("QLOCAL" * 10, ["QLOCAL"]) == ""
