"""The oracle of a page set, against IBM's manual, real SMF records and cases worked by hand."""

import csv
from pathlib import Path

import pytest

from tests.naive.page_set import packs, usable_pages, whole_pages_and_record
from tests.support.oracle_driver import OraclePageSetDriver

MIB4 = 4 * 1024**2
FIELDS = ("pages_used", "pages_persistent", "pages_nonpersistent", "pages_unused")


def pages(state: dict[str, int]) -> tuple[int, ...]:
    return tuple(state[name] for name in FIELDS)


# -- storage of a message [IBM: IBM MQ, "Page sets 01 to 99"]


def test_a_short_message_is_its_data_and_372_bytes_up_to_a_whole_page() -> None:
    assert whole_pages_and_record(0) == (0, 372)
    assert whole_pages_and_record(3685) == (0, 4057)


def test_a_long_message_takes_whole_pages_and_control_information() -> None:
    assert whole_pages_and_record(3686) == (1, 23)  # (3686 + 352) / 4049, rounded up: 1; c = 20 + 3n
    assert whole_pages_and_record(3697) == (1, 23)  # "the first page contains 3697 bytes of the message data"
    assert whole_pages_and_record(3698) == (2, 26)
    assert whole_pages_and_record(3697 + 4049) == (2, 26)
    assert whole_pages_and_record(3697 + 4049 + 1) == (3, 29)
    assert whole_pages_and_record(MIB4) == (1036, 3128)


def test_each_4_mb_of_a_very_long_message_uses_1037_pages_and_the_rest_is_a_long_or_short_one() -> None:
    assert whole_pages_and_record(MIB4 + 1) == (1037, 373)
    assert whole_pages_and_record(2 * MIB4) == (2074, 0)
    assert whole_pages_and_record(2 * MIB4 + 3686) == (2075, 23)
    assert whole_pages_and_record(25 * MIB4) == (25 * 1037, 0)


def test_usable_pages_of_the_published_maximum() -> None:
    assert usable_pages(16_777_216) == 16_776_178
    assert usable_pages(16_184) == 16_182
    assert usable_pages(16_185) == 16_182


def test_usable_pages_of_real_page_sets(shared: Path) -> None:
    """Each of the eleven totals in SMF is the usable part of whole tracks, 12 pages of 4 KB each."""
    with (shared / "fixtures/smf/expected/SMF_MQ1000-QIS1.csv").open() as file:
        rows = list(csv.DictReader(file))
    totals = {int(row["Total_Pages"]) for row in rows} - {0}
    assert len(totals) == 11
    assert totals < {usable_pages(12 * tracks) for tracks in range(1, 100_000)}
    for row in rows:
        parts = (int(row[name]) for name in ("Unused_Pages", "Persistent_Pages", "Nonpersistent_Pages"))
        assert int(row["Total_Pages"]) == sum(parts)


# -- one short message a page


def test_since_7_0_1_each_short_message_has_a_page_and_so_has_control_information() -> None:
    twin = OraclePageSetDriver()
    assert pages(twin.put(100, count=3)) == (3, 0, 3, 95)
    assert pages(twin.put(5000, persistent=True)) == (6, 3, 3, 92)  # 2 pages and the control record's
    assert pages(twin.get()) == (5, 3, 2, 93)


@pytest.mark.parametrize(
    ("version", "packed"),
    [(None, False), ("9.4", False), ("7.0.1", False), ("7.0", True), ("7.0.0", True), ("6", True), ("10.0.0", False)],
)
def test_short_messages_are_packed_before_7_0_1(version: str | None, packed: bool) -> None:
    assert packs(version) == packed
    assert OraclePageSetDriver(version=version).put(100, count=3)["pages_used"] == (1 if packed else 3)


# -- packed


def test_a_short_message_goes_to_the_page_being_filled_if_it_fits_there() -> None:
    twin = OraclePageSetDriver(version="7.0.0")
    assert twin.put(1628, count=2)["pages_used"] == 1  # 2000 bytes each: 57 are left
    assert twin.put(0)["pages_used"] == 2
    assert twin.put(3685 - 372)["pages_used"] == 2  # fills it to the last byte
    assert twin.put(0)["pages_used"] == 3


def test_control_information_is_packed_with_short_messages() -> None:
    twin = OraclePageSetDriver(version="6.0")
    assert twin.put(5000)["pages_used"] == 3
    assert twin.put(5000)["pages_used"] == 5
    assert twin.put(100)["pages_used"] == 5


def test_a_page_is_free_when_its_last_record_is_gone_and_no_longer_filled() -> None:
    twin = OraclePageSetDriver(version="6.0")
    twin.put(3000, msgid="A")  # 3372 bytes: 685 are left
    twin.put(300, msgid="B")
    assert twin.get(msgid="A")["pages_used"] == 1
    assert twin.put(100, msgid="C")["pages_used"] == 2  # 472 do not fit in the 13 left, whatever is free before them
    twin.get(msgid="C")
    assert twin.get(msgid="B")["pages_used"] == 0
    assert twin.put(3685)["pages_used"] == 1


def test_a_page_with_a_persistent_message_counts_as_persistent() -> None:
    twin = OraclePageSetDriver(version="6.0")
    twin.put(100)
    assert pages(twin.put(100, persistent=True, msgid="P")) == (1, 1, 0, 97)
    assert pages(twin.get(msgid="P")) == (1, 0, 1, 97)


# -- expansion


def test_a_page_set_expands_before_more_than_90_percent_of_it_is_used() -> None:
    twin = OraclePageSetDriver(expand="SYSTEM")  # 98 usable
    assert twin.put(count=88)["expansions"] == 0
    state = twin.put()
    assert (state["expansions"], state["pages_total"], state["status"]) == (1, 108, "NORMAL")


def test_a_large_message_takes_as_many_extents_as_it_needs() -> None:
    twin = OraclePageSetDriver(expand="USER", secondary_pages=50)
    state = twin.put(MIB4)  # 1037 pages: 1,037 / 0.9 = 1,152.2 usable
    assert (state["pages_used"], state["pages_total"], state["expansions"]) == (1037, 1198, 22)
    assert state["overfull_puts"] == 0


def test_a_small_page_set_grows_by_at_least_a_page() -> None:
    assert OraclePageSetDriver(pages=6, expand="SYSTEM").put(count=4)["pages_total"] == 5


@pytest.mark.parametrize(
    ("fields", "status"),
    [
        ({"expand": "NONE"}, "NORMAL"),
        ({"expand": "USER", "secondary_pages": None}, "FAILED"),
        ({"expand": "USER", "secondary_pages": 0}, "FAILED"),
        ({"expand": "SYSTEM", "max_pages": 109}, "FAILED"),
        ({"expand": "USER", "secondary_pages": 16_777_117}, "MAXIMUM"),
    ],
)
def test_a_page_set_that_cannot_expand(fields: dict[str, object], status: str) -> None:
    twin = OraclePageSetDriver(**fields)
    state = twin.put(count=98)
    assert (state["status"], state["expansions"], state["overfull_puts"]) == (status, 0, 0)
    state = twin.put(count=2)
    assert (state["overfull_puts"], state["pages_unused"], state["pages_used"]) == (2, 0, 100)


def test_there_are_119_expansions_at_most() -> None:
    state = OraclePageSetDriver(expand="USER", secondary_pages=1).put(MIB4)
    assert (state["status"], state["expansions"], state["pages_total"]) == ("MAXIMUM", 119, 217)


def test_an_altered_expand_tries_again() -> None:
    twin = OraclePageSetDriver(expand="USER", secondary_pages=0)
    twin.put(count=90)
    assert twin.alter(expand="SYSTEM")["status"] == "NORMAL"
    assert twin.put()["pages_total"] == 108


def test_pages_are_altered_between_what_is_used_and_what_its_volumes_hold() -> None:
    twin = OraclePageSetDriver(max_pages=200)
    twin.put(count=50)
    assert twin.alter(pages=51)["refused_alters"] == 1  # 49 of them usable
    assert twin.alter(pages=201)["refused_alters"] == 2
    assert twin.alter(max_pages=99)["refused_alters"] == 3
    assert twin.alter(pages=52)["pages_unused"] == 0
    twin.alter(expand="SYSTEM")
    assert twin.put()["expansions"] == 2  # 52, 57, 62 allocated
    assert twin.alter(pages=61)["refused_alters"] == 4  # extents are not given back


# -- restart and MEASURE


def test_nonpersistent_messages_are_gone_after_a_restart_and_units_are_backed_out() -> None:
    twin = OraclePageSetDriver()
    twin.put(1)
    twin.put(2, persistent=True)
    twin.put(3, persistent=True, uow="U")
    twin.put(4, persistent=True)
    twin.get(uow="V")  # takes the first, nonpersistent one
    state = twin.send("RESTART", None)
    assert (twin.lengths(), state["uncommitted"], pages(state)) == ([2, 4], 0, (2, 2, 0, 96))


def test_what_a_measure_finds_beyond_the_model_counts_and_is_drawn_down() -> None:
    twin = OraclePageSetDriver()
    twin.put(count=2)
    state = twin.measure(pages_persistent=10, pages_nonpersistent=7, messages=12)
    assert pages(state) == (17, 10, 7, 81)
    assert state["messages"] == 12
    assert pages(twin.get(queue="B.QUEUE", count=5)) == (10, 5, 5, 88)
    state = twin.send("RESTART", None)
    assert (pages(state), state["messages"]) == ((5, 5, 0, 93), 4)  # 5 pages of 9 were persistent, of 5 messages
    assert pages(twin.get(queue="B.QUEUE", count=2)) == (3, 3, 0, 95)
