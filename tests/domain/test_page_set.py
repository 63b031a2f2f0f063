"""Pages of messages on a page set: [IBM: Page sets 01 to 99]; docs/storage-model.md, docs/state.md."""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import kernels.page_set
from tests.naive.page_set import usable_pages, whole_pages_and_record
from tests.support.store_driver import MIB, Open

MIB4 = 4 * MIB
ALLOCATED = {  # usable pages of SMF records -> whole tracks, 12 records of 4 KB each
    10: 12,
    70: 72,
    538: 540,
    1078: 1080,
    1618: 1620,
    3058: 3060,
    10_078: 10_080,
    22_857: 22_860,
    50_035: 50_040,
    600_441: 600_480,
    963_659: 963_720,
}

PagesOf = Callable[[int], tuple[int, int]]
UsablePages = Callable[[int], int]


@pytest.fixture
def pages_of(side: str) -> PagesOf:
    """Return the function that gives (pages of a message's own, bytes of its record on another page)."""
    return {"oracle": whole_pages_and_record, "twin": kernels.page_set.pages_of}[side]


@pytest.fixture
def usable(side: str) -> UsablePages:
    """Return the function that gives the pages for messages of the pages allocated."""
    return {"oracle": usable_pages, "twin": kernels.page_set.usable_pages}[side]


def pages(state: dict[str, Any]) -> tuple[int, int, int, int]:
    """Return the pages used, persistent, nonpersistent, unused; the total is their sum."""
    assert state["pages_used"] == state["pages_persistent"] + state["pages_nonpersistent"]
    if state["usage_pct"] <= 100:
        assert state["pages_total"] == state["pages_used"] + state["pages_unused"]
    return state["pages_used"], state["pages_persistent"], state["pages_nonpersistent"], state["pages_unused"]


# -- what the document says of the size of messages


def test_the_usable_space_beside_the_header_of_a_short_message_is_3685_bytes(pages_of: PagesOf) -> None:
    """Short messages: "the usable space remaining on the page is 3685 bytes"."""
    assert pages_of(0) == (0, 372)
    assert pages_of(3685) == (0, 4057)
    assert pages_of(3686) == (1, 20 + 3)


@pytest.mark.parametrize(
    ("length", "n"),
    [(3686, 1), (3697, 1), (3698, 2), (3697 + 4049, 2), (3697 + 4049 + 1, 3), (100_000, 25), (MIB4, 1036)],
)
def test_a_long_message_takes_n_pages_and_c_bytes(pages_of: PagesOf, length: int, n: int) -> None:
    """Long messages: n = (message data length + 352) / 4049 rounded up, c = 20 + (3n) bytes.

    "the first page contains 3697 bytes of the message data", each further one 4049.
    """
    assert pages_of(length) == (n, 20 + 3 * n)


def test_each_4_mb_of_a_very_long_message_takes_1037_pages(pages_of: PagesOf) -> None:
    """Very long messages: "each 4 MB uses 1037 pages. Any remainder is stored in the same way as a long message"."""
    assert pages_of(MIB4) == (1036, 20 + 3 * 1036)  # long still: "not greater than 4 MB"
    assert pages_of(MIB4 + 1) == (1037 + 1, 20 + 3)
    assert pages_of(MIB4 + 3685) == (1037 + 1, 20 + 3)  # "as a long message", however short
    assert pages_of(2 * MIB4) == (2 * 1037, 0)
    assert pages_of(2 * MIB4 + 3686) == (2 * 1037 + 1, 23)
    assert pages_of(25 * MIB4) == (25 * 1037, 0)  # 100 MB, the longest there is


def test_at_least_two_pages_are_control_information(usable: UsablePages) -> None:
    """Calculating the storage requirement: "A minimum of two pages are required for page set control information"."""
    assert [usable(allocated) for allocated in (2, 3, 100, 16_184, 16_185)] == [0, 1, 98, 16_182, 16_182]


def test_the_largest_page_set_has_16776178_pages_for_messages(usable: UsablePages) -> None:
    assert usable(16_777_216) == 16_776_178  # the published maximum


def test_usable_pages_are_those_of_real_smf_records(shared: Path, usable: UsablePages) -> None:
    """The eleven sizes of SMF 115, QIS1."""
    with (shared / "fixtures/smf/expected/SMF_MQ1000-QIS1.csv").open() as file:
        rows = list(csv.DictReader(file))
    totals = {int(row["Total_Pages"]) for row in rows} - {0}
    assert totals == set(ALLOCATED)
    assert {usable(allocated) for allocated in ALLOCATED.values()} == totals
    for row in rows:
        parts = [int(row[f"{name}_Pages"]) for name in ("Unused", "Persistent", "Nonpersistent")]
        assert int(row["Total_Pages"]) == sum(parts)


# -- one short message a page, since 7.0.1


def test_each_short_message_has_a_page_and_so_has_control_information(page_set: Open) -> None:
    driver = page_set()
    assert pages(driver.put(100, count=3)) == (3, 0, 3, 95)
    assert pages(driver.put(5000, persistent=True)) == (6, 3, 3, 92)  # 2 pages, and one of the control information
    assert pages(driver.get()) == (5, 3, 2, 93)


def test_100_messages_of_11_bytes_take_about_the_102_pages_that_were_measured(page_set: Open) -> None:
    """Check SMF records of MQ 8.0. Packed they would take 10."""
    measured = 102
    assert abs(page_set(version="8.0", pages=1000).put(11, count=100)["pages_used"] - measured) <= 0.02 * measured
    assert page_set(version="7.0.0", pages=1000).put(11, count=100)["pages_used"] == 10


@pytest.mark.parametrize(
    ("version", "packed"),
    [(None, False), ("9.4", False), ("10.0.0", False), ("7.0.1", False), ("7.0.0", True), ("7.0", True), ("6", True)],
)
def test_short_messages_share_pages_before_7_0_1(page_set: Open, version: str | None, packed: bool) -> None:
    assert page_set(version=version).put(100, count=3)["pages_used"] == (1 if packed else 3)


# -- packed


def test_a_short_message_goes_to_the_next_available_space_or_the_next_page(page_set: Open) -> None:
    """Short messages: "if there is not enough space available, on the next page"; what is left remains unused."""
    driver = page_set(version="7.0.0")
    assert driver.put(1628, count=2)["pages_used"] == 1  # 2,000 bytes each: 57 are left
    assert driver.put(0)["pages_used"] == 2
    assert driver.put(3685 - 372)["pages_used"] == 2  # fills it to the last byte
    assert driver.put(0)["pages_used"] == 3


def test_control_information_of_a_long_message_is_stored_like_a_short_one(page_set: Open) -> None:
    """Long messages: "stores control information that points to these pages in the same way"."""
    driver = page_set(version="6.0")
    assert driver.put(5000)["pages_used"] == 3
    assert driver.put(5000)["pages_used"] == 5
    assert driver.put(100)["pages_used"] == 5


def test_a_shared_page_is_free_when_its_last_record_is_gone(page_set: Open) -> None:
    driver = page_set(version="6.0")
    driver.put(3000, msgid="A")  # 3,372 bytes: 685 are left
    driver.put(300, msgid="B")
    assert driver.get(msgid="A")["pages_used"] == 1
    assert driver.put(100, msgid="C")["pages_used"] == 2
    driver.get(msgid="C")
    assert driver.get(msgid="B")["pages_used"] == 0
    assert driver.put(3685)["pages_used"] == 1


def test_a_page_with_a_persistent_message_counts_as_persistent(page_set: Open) -> None:
    driver = page_set(version="6.0")
    driver.put(100)
    assert pages(driver.put(100, persistent=True, msgid="P")) == (1, 1, 0, 97)
    assert pages(driver.get(msgid="P")) == (1, 0, 1, 97)


# -- expansion


def test_system_expands_by_a_tenth_before_more_than_90_percent_are_used(page_set: Open) -> None:
    driver = page_set(expand="SYSTEM")
    assert driver.put(count=88)["expansions"] == 0
    state = driver.put()
    assert (state["expansions"], state["pages_total"], state["status"]) == (1, 108, "NORMAL")


def test_at_90_percent_exactly_it_does_not_expand_yet(page_set: Open) -> None:
    driver = page_set(pages=102, expand="SYSTEM")  # 100 for messages
    assert driver.put(count=90)["expansions"] == 0
    assert driver.put()["expansions"] == 1


def test_a_small_page_set_grows_by_at_least_a_page(page_set: Open) -> None:
    assert page_set(pages=6, expand="SYSTEM").put(count=4)["pages_total"] == 5


def test_user_expands_by_the_secondary_extent_as_often_as_a_message_needs(page_set: Open) -> None:
    state = page_set(expand="USER", secondary_pages=50).put(MIB4)  # 1,037 pages: of 1,152.2 they are 90 %
    assert (state["pages_used"], state["pages_total"], state["expansions"]) == (1037, 1198, 22)
    assert state["overfull_puts"] == 0


@pytest.mark.parametrize(
    ("fields", "status"),
    [
        ({"expand": "NONE"}, "NORMAL"),
        ({"expand": "USER"}, "FAILED"),
        ({"expand": "USER", "secondary_pages": 0}, "FAILED"),
        ({"expand": "SYSTEM", "max_pages": 109}, "FAILED"),
        ({"expand": "USER", "secondary_pages": 16_777_116, "max_pages": 16_777_215}, "FAILED"),
        ({"expand": "USER", "secondary_pages": 16_777_117}, "MAXIMUM"),
    ],
)
def test_a_page_set_that_cannot_expand_is_full(page_set: Open, fields: dict[str, Any], status: str) -> None:
    driver = page_set(**fields)
    state = driver.put(count=98)
    assert (state["status"], state["expansions"], state["overfull_puts"]) == (status, 0, 0)
    state = driver.put(count=2)
    assert (state["overfull_puts"], state["pages_used"], state["pages_unused"]) == (2, 100, 0)
    assert state["usage_pct"] == pytest.approx(100 * 100 / 98, abs=0.001)


@pytest.mark.parametrize(
    ("fields", "largest"),
    [
        ({"expand": "NONE"}, 98),
        ({"expand": "USER"}, 98),
        ({"expand": "USER", "secondary_pages": 50, "max_pages": 260}, 248),
        ({"expand": "SYSTEM", "max_pages": 130}, 119),
        ({"expand": "USER", "secondary_pages": 1}, 217),
    ],
)
def test_what_a_page_set_can_become(page_set: Open, fields: dict[str, Any], largest: int) -> None:
    driver = page_set(**fields)
    assert driver.state()["pages_max"] == largest
    assert driver.put(count=91)["pages_max"] == largest
    state = driver.put(count=300)
    assert state["pages_max"] == state["pages_total"] == largest


def test_there_are_119_expansions_at_most(page_set: Open) -> None:
    state = page_set(expand="USER", secondary_pages=1).put(MIB4)
    assert (state["status"], state["expansions"], state["pages_total"]) == ("MAXIMUM", 119, 217)


# -- units of work, restart, direct, 2192


def test_a_put_takes_its_pages_before_the_commit_and_a_get_keeps_them_until_it(page_set: Open) -> None:
    driver = page_set()
    assert pages(driver.put(uow="U"))[0] == 1
    assert pages(driver.send("BACKOUT", uow="U"))[0] == 0
    driver.put(msgid="A")
    assert pages(driver.get(msgid="A", uow="V"))[0] == 1
    assert pages(driver.send("COMMIT", uow="V"))[0] == 0


def test_a_get_that_came_before_its_put_leaves_nothing_behind(page_set: Open) -> None:
    driver = page_set(version="6.0")
    driver.get(msgid="A")
    state = driver.put(5000, msgid="A")
    assert (pages(state)[0], state["messages"], state["unmatched_gets"]) == (0, 0, 0)


def test_a_duplicate_changes_nothing_but_its_count(page_set: Open) -> None:
    driver = page_set()
    driver.put(seq=1)
    state = driver.put(seq=1)
    assert (pages(state)[0], state["duplicates"]) == (1, 1)


def test_a_put_to_a_waiting_getter_takes_no_page(page_set: Open) -> None:
    assert pages(page_set().put(direct=True))[0] == 0


def test_a_put_refused_with_2192_takes_no_page(page_set: Open) -> None:
    state = page_set().put(reason=2192)
    assert (pages(state)[0], state["full_puts"]) == (0, 1)


def test_after_a_restart_only_committed_persistent_messages_are_there(page_set: Open) -> None:
    """Check docs/events.md: units of work are backed out, then the nonpersistent messages go; numbering begins anew."""
    driver = page_set(version="6.0", pages=1000)
    driver.put(5000, count=3, seq=7)
    driver.put(100, persistent=True)
    driver.put(100, persistent=True, uow="U")
    driver.get(uow="V")
    state = driver.send("RESTART", None, store="QM01/PS04")
    assert (pages(state)[:3], state["messages"], state["uncommitted"]) == ((1, 1, 0), 1, 0)
    state = driver.put(seq=7)
    assert (state["duplicates"], state["messages"]) == (0, 2)


def test_nonpersistent_messages_are_gone_after_a_restart_and_units_are_backed_out(page_set: Open) -> None:
    driver = page_set()
    driver.put(1)
    driver.put(2, persistent=True)
    driver.put(3, persistent=True, uow="U")
    driver.put(4, persistent=True)
    driver.get(uow="V")  # takes the first, nonpersistent one
    state = driver.send("RESTART", None)
    assert (state["uncommitted"], pages(state)) == (0, (2, 2, 0, 96))
    assert driver.get_all() == [2, 4]


# -- ALTER


def test_what_an_alter_takes_and_refuses(page_set: Open) -> None:
    driver = page_set(expand="SYSTEM")
    driver.put(count=50)
    assert driver.alter(pages=51)["refused_alters"] == 1  # 49 for messages, 50 are used
    assert driver.alter(pages=52)["pages_total"] == 50
    assert driver.alter(pages=200)["pages_total"] == 198
    assert driver.alter(max_pages=199)["refused_alters"] == 2
    driver.put(count=140)
    state = driver.alter(pages=219)
    assert (state["expansions"], state["pages_total"], state["refused_alters"]) == (1, 218, 3)  # 220: extents stay
    state = driver.alter(buffer_pool=7)
    assert (state["buffer_pool"], state["refused_alters"]) == (7, 3)


def test_pages_are_altered_between_what_is_used_and_what_its_volumes_hold(page_set: Open) -> None:
    driver = page_set(max_pages=200)
    driver.put(count=50)
    assert driver.alter(pages=51)["refused_alters"] == 1  # 49 of them usable
    assert driver.alter(pages=201)["refused_alters"] == 2
    assert driver.alter(max_pages=99)["refused_alters"] == 3
    assert driver.alter(pages=52)["pages_unused"] == 0
    driver.alter(expand="SYSTEM")
    assert driver.put()["expansions"] == 2  # 52, 57, 62 allocated
    assert driver.alter(pages=61)["refused_alters"] == 4  # extents are not given back


@pytest.mark.parametrize("change", [{"expand": "SYSTEM"}, {"secondary_pages": 10}, {"pages": 101}])
def test_an_alter_of_what_makes_it_expand_lets_it_try_again(page_set: Open, change: dict[str, Any]) -> None:
    driver = page_set(expand="USER", secondary_pages=0)
    assert driver.put(count=90)["status"] == "FAILED"
    assert driver.alter(buffer_pool=1)["status"] == "FAILED"
    assert driver.alter(**change)["status"] == "NORMAL"
    if "expand" in change:
        assert driver.put()["pages_total"] == 108


# -- MEASURE


def test_what_a_measure_finds_beyond_the_model_counts_and_is_drawn_down(page_set: Open) -> None:
    driver = page_set()
    driver.put(count=2)
    state = driver.measure(pages_persistent=10, pages_nonpersistent=7, messages=12)
    assert pages(state) == (17, 10, 7, 81)
    assert state["baseline"] == {"messages": 10, "pages_persistent": 10, "pages_nonpersistent": 5}
    assert (state["messages"], state["drift_pct"]) == (12, 0.0)
    state = driver.get(queue="A.QUEUE", count=7)  # 2 of the model, 5 of the baseline
    assert (pages(state), state["messages"]) == ((8, 5, 3, 90), 5)


def test_a_baseline_is_drawn_down_in_proportion_and_a_restart_keeps_its_persistent_part(page_set: Open) -> None:
    driver = page_set(queues=2)
    driver.put(count=2)
    state = driver.measure(pages_persistent=10, pages_nonpersistent=7, messages=12)
    assert (pages(state), state["messages"]) == ((17, 10, 7, 81), 12)
    assert pages(driver.get(queue="B.QUEUE", count=5)) == (10, 5, 5, 88)
    state = driver.send("RESTART", None)
    assert (pages(state), state["messages"]) == ((5, 5, 0, 93), 4)  # 5 pages of 9 were persistent, of 5 messages
    assert pages(driver.get(queue="B.QUEUE", count=2)) == (3, 3, 0, 95)


def test_a_restart_takes_the_nonpersistent_part_of_the_baseline(page_set: Open) -> None:
    driver = page_set()
    driver.measure(pages_persistent=20, pages_nonpersistent=10, messages=30)
    driver.get(count=15)
    state = driver.send("RESTART", None, store="QM01/PS04")
    assert (pages(state)[:3], state["messages"]) == ((10, 10, 0), 10)
    assert pages(driver.get(count=5))[0] == 5


@pytest.mark.parametrize(
    ("measured", "messages", "persistent", "nonpersistent"),
    [
        ({"pages_used": 30}, None, 30, None),
        ({"pages_used": 30, "pages_persistent": 10}, None, 10, 20),
        ({"pages_used": 30, "pages_nonpersistent": 10}, None, 20, 10),
        ({"pages_persistent": 7, "messages": 100}, 100, 7, None),
        ({"messages": 5}, 5, None, None),
    ],
)
def test_a_baseline_of_what_was_measured(
    page_set: Open, measured: dict[str, int], messages: int | None, persistent: int | None, nonpersistent: int | None
) -> None:
    expected = {"messages": messages, "pages_persistent": persistent, "pages_nonpersistent": nonpersistent}
    assert page_set().measure(**measured)["baseline"] == expected


def test_drift_is_the_worst_of_the_pages_measured(page_set: Open) -> None:
    driver = page_set()
    driver.put(count=20)
    driver.measure(pages_used=20)
    state = driver.measure(pages_persistent=10, pages_nonpersistent=19)
    assert state["drift_pct"] == pytest.approx(-100 * 10 / 98, abs=0.001)


def test_the_marks_of_the_buffer_pool_are_reported_where_it_is_measured(page_set: Open) -> None:
    """Check docs/storage-model.md: asynchronous writes from 85 % used, synchronous from 95 %."""
    driver = page_set(buffer_pool=3)
    assert (driver.state()["buffer_pool"], driver.state()["buffer_pool_pct"], driver.state()["buffer_pool_writes"]) == (
        *(3, None, None),
    )
    results = [driver.measure(buffer_pool_pct=pct)["buffer_pool_writes"] for pct in (84.9, 85, 94.9, 95)]
    assert results == ["none", "asynchronous", "asynchronous", "synchronous"]
    assert driver.state()["buffer_pool_pct"] == 95
    assert driver.state()["baseline"] is None
    assert driver.measure(pages_used=4)["baseline"] is not None


# -- several queues


def test_queues_of_a_page_set_share_its_pages(page_set: Open) -> None:
    """Calculating the storage requirement: "all the queues that map to the page set"."""
    driver = page_set(queues=3, version="6.0")
    driver.put(queue="A.QUEUE")
    state = driver.put(queue="B.QUEUE", count=2)
    assert state["pages_used"] == 1
    assert [(queue["name"], queue["depth"]) for queue in state["queues"]] == [("B.QUEUE", 2), ("A.QUEUE", 1)]
