"""MQSC text as administrators have it: continuations, quotes, comments (IBM MQ, "Building command scripts")."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twin.estate import EstateError
from twin.estate.mqsc_text import Parameter, Value, parameters, statements

COMMANDS = """\
DEFINE CFSTRUCT(APP1) DESCR('Orders, payments; keep ''large'' data out') CFLEVEL(5) OFFLOAD(SMDS) OFFLD1SZ(32K)
define qlocal ( 'Mixed.Case' ) , qsgdisp(shared),cfstruct(app1) REPLACE
DEF QA(ALIAS) TARGQ(ORDERS)DESCR(' ')
ALTER QLOCAL(A) TRIGDPTH ( 1)
"""


def read(text: str) -> list[list[tuple[str, tuple[Value, ...] | None]]]:
    """Return every command as (keyword, values)."""
    return [[(item.keyword, item.values) for item in parameters(statement)] for statement in statements(text, "x.mqsc")]


def only(text: str) -> dict[str, Parameter]:
    (statement,) = statements(text, "x.mqsc")
    return {item.keyword: item for item in parameters(statement)}


def test_keywords_in_any_case_blanks_and_commas_between() -> None:
    _, define, alias, alter = read(COMMANDS)
    assert define == [
        ("DEFINE", None),
        ("QLOCAL", (Value("Mixed.Case", quoted=True),)),
        ("QSGDISP", (Value("SHARED"),)),
        ("CFSTRUCT", (Value("APP1"),)),
        ("REPLACE", None),
    ]
    assert alias == [
        ("DEF", None),
        ("QA", (Value("ALIAS"),)),
        ("TARGQ", (Value("ORDERS"),)),
        ("DESCR", (Value(" ", quoted=True),)),
    ]
    assert alter[-1] == ("TRIGDPTH", (Value("1"),))


def test_a_doubled_quote_is_one_quote() -> None:
    assert only("ALTER QL(A) DESCR('keep ''large'' out')")["DESCR"].values == (Value("keep 'large' out", quoted=True),)


def test_plus_continues_at_the_first_nonblank_of_the_next_line() -> None:
    assert only("ALTER QL(A) DESCR('Fr+\n     ed')")["DESCR"].values == (Value("Fred", quoted=True),)


def test_minus_continues_at_column_1_of_the_next_line() -> None:
    assert only("ALTER QL(A) DESCR('Fr-\ned')")["DESCR"].values == (Value("Fred", quoted=True),)
    assert only("ALTER QL(A) DESCR('Fr-\n ed')")["DESCR"].values == (Value("Fr ed", quoted=True),)


def test_a_sign_that_is_not_last_on_its_line_is_text() -> None:
    assert only("ALTER QL(A) DESCR('a + b - c')")["DESCR"].values == (Value("a + b - c", quoted=True),)


def test_a_blank_before_the_next_keyword_is_not_needed() -> None:
    assert list(only("DEFINE CFSTRUCT(A)CFLEVEL(5)+\nRECOVER(YES)")) == ["DEFINE", "CFSTRUCT", "CFLEVEL", "RECOVER"]


def test_comments_and_blank_lines_may_stand_within_a_command() -> None:
    text = "* head\n\nDEFINE QL(A) +\n* in between ('\n\n   STGCLASS(B)\n*tail"
    assert read(text) == read("DEFINE QL(A) STGCLASS(B)")


def test_an_asterisk_beyond_column_1_is_no_comment() -> None:
    assert only("DEFINE CFSTRUCT(A) DSGROUP('MQ.+\n *.A')")["DSGROUP"].values == (Value("MQ.*.A", quoted=True),)


def test_a_semicolon_ends_a_command() -> None:
    assert read("DEFINE QL(A) DESCR('a;b');\nDEFINE QL(B) +\n;") == read("DEFINE QL(A) DESCR('a;b')\nDEFINE QL(B)")


def test_sequence_numbers_in_columns_73_to_80_are_left_out() -> None:
    first, second = "DEFINE QLOCAL(A) +".ljust(72) + "00000100", "   STGCLASS(B)".ljust(72) + "00000200"
    assert read(f"{first}\n{second}") == read("DEFINE QLOCAL(A) STGCLASS(B)")


def test_a_line_may_run_past_column_72() -> None:
    line = f"DEFINE QLOCAL(A) DESCR('{'x' * 60}') STGCLASS(B)"
    assert len(line) > 80
    assert only(line)["STGCLASS"].values == (Value("B"),)


def test_lines_may_end_as_on_windows() -> None:
    assert read(COMMANDS.replace("\n", "\r\n")) == read(COMMANDS)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("\nDEFINE QL(A) +\n", "x.mqsc:2: the text ends after a +"),
        ("DEFINE QL(A) DESCR('open\n", "x.mqsc:1: the quote before "),
        ("DEFINE QL(A) +\n  DESCR('open", "x.mqsc:2: the quote before "),
        ("DEFINE QL(A +\n\n* note\n REPLACE", "x.mqsc:1: QL( has no closing parenthesis"),
        ("DEFINE QL(A) +\n CONNAME(host(1414))", "x.mqsc:2: ( within CONNAME(...); put the value in quotes"),
        ("DEFINE QL(A) REPLACE +\n NOREPLACE", "x.mqsc:2: NOREPLACE is repeated"),
        ("DEFINE QL(A) MAXDEPTH(1) +\n\n  MAXDEPTH(2)", "x.mqsc:3: MAXDEPTH is repeated"),
        ("DEFINE QL(A) 'x'", "x.mqsc:1: x where a keyword must be, after QL(A)"),
        ("DEFINE QL(A); DEFINE QL(B)", "x.mqsc:1: text after the semicolon"),
        ("(A)", "x.mqsc:1: ( where a keyword must be, after nothing"),
    ],
)
def test_wrong_syntax_is_named_by_line(text: str, message: str) -> None:
    with pytest.raises(EstateError) as caught:
        read(text)
    assert str(caught.value).startswith(message)


def cut(text: str, places: list[int], signs: random.Random) -> str:
    """Return the text with each command continued on new lines at some of the places."""
    out = []
    for line in text.splitlines():
        pieces, rest = [], line
        for place in sorted({place % len(line) for place in places} - {0}, reverse=True):
            rest, piece = rest[:place], rest[place:]
            # After a +, leading blanks are lost: only a - may cut before a blank. A comment line may follow, but
            # the piece must not look like one.
            plus = not piece.startswith(" ") and signs.random() < 0.5
            if piece.startswith("*") and not plus:
                rest += piece
                continue
            pieces.append(("+\n" + " " * signs.randrange(5) if plus else "-\n") + piece)
            if signs.random() < 0.2:
                pieces[-1] = pieces[-1].replace("\n", "  \n* a note, with a ' and a (\n\n", 1)
        out.append(rest + "".join(reversed(pieces)))
    return "\n".join(out)


@given(st.lists(st.integers(1, 200), max_size=12), st.randoms(use_true_random=False))
def test_a_command_means_the_same_wherever_its_lines_are_cut(places: list[int], signs: random.Random) -> None:
    assert read(cut(COMMANDS, places, signs)) == read(COMMANDS)


WORDS = st.text("ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._%/", min_size=1, max_size=12)
STRINGS = st.text(st.characters(codec="utf-8", exclude_characters="\r\n", exclude_categories=["Cc", "Cs"]), max_size=30)


@given(st.dictionaries(WORDS, st.one_of(WORDS, STRINGS.map(lambda text: (text,))), min_size=1))
def test_what_is_written_by_the_rules_reads_back(values: dict[str, str | tuple[str]]) -> None:
    written, expected = ["DEFINE"], [("DEFINE", None)]
    for place, value in enumerate(values.values()):
        keyword = f"KEY{place}"
        if isinstance(value, tuple):
            quoted = value[0].replace("'", "''")
            written.append(f"{keyword}('{quoted}')")
            expected.append((keyword, (Value(value[0], quoted=True),)))
        else:
            written.append(f"{keyword}({value})")
            expected.append((keyword, (Value(value),)))
    assert read(" ".join(written)) == [expected]
