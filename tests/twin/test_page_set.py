"""Pages of messages on a page set: [IBM: Page sets 01 to 99]; docs/storage-model.md, docs/state.md."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import pytest

from kernels import page_set
from tests.kernels.driver import MIB, PageSetDriver

MIB4 = 4 * MIB


def pages(state: dict[str, Any]) -> tuple[int, int, int, int]:
    """Used, persistent, nonpersistent, unused; the total is their sum."""
    assert state["pages_used"] == state["pages_persistent"] + state["pages_nonpersistent"]
    if state["usage_pct"] <= 100:
        assert state["pages_total"] == state["pages_used"] + state["pages_unused"]
    return state["pages_used"], state["pages_persistent"], state["pages_nonpersistent"], state["pages_unused"]


# -- what the document says of the size of messages


def test_the_usable_space_beside_the_header_of_a_short_message_is_3685_bytes() -> None:
    """Short messages: "the usable space remaining on the page is 3685 bytes"."""
    assert page_set.pages_of(3685) == (0, 4057)
    assert page_set.pages_of(3686) == (1, 20 + 3)


@pytest.mark.parametrize(
    ("length", "n"), [(3686, 1), (3697, 1), (3698, 2), (3697 + 4049, 2), (3697 + 4049 + 1, 3), (100_000, 25)]
)
def test_a_long_message_takes_n_pages_and_c_bytes(length: int, n: int) -> None:
    """Long messages: n = (message data length + 352) / 4049 rounded up, c = 20 + (3n) bytes.

    "the first page contains 3697 bytes of the message data", each further one 4049.
    """
    assert page_set.pages_of(length) == (n, 20 + 3 * n)


def test_each_4_mb_of_a_very_long_message_takes_1037_pages() -> None:
    """Very long messages: "each 4 MB uses 1037 pages. Any remainder is stored in the same way as a long message"."""
    assert page_set.pages_of(MIB4) == (1036, 20 + 3 * 1036)  # long still: "not greater than 4 MB"
    assert page_set.pages_of(MIB4 + 1) == (1037, 373)
    assert page_set.pages_of(2 * MIB4) == (2 * 1037, 0)
    assert page_set.pages_of(2 * MIB4 + 3686) == (2 * 1037 + 1, 23)
    assert page_set.pages_of(25 * MIB4) == (25 * 1037, 0)  # 100 MB, the longest there is


def test_at_least_two_pages_are_control_information() -> None:
    """Calculating the storage requirement: "A minimum of two pages are required for page set control information"."""
    assert [page_set.usable_pages(allocated) for allocated in (2, 3, 100, 16_184, 16_185)] == [0, 1, 98, 16_182, 16_182]


def test_the_largest_page_set_has_16776178_pages_for_messages() -> None:
    assert page_set.usable_pages(16_777_216) == 16_776_178  # the published maximum


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


def test_usable_pages_are_those_of_real_smf_records(shared: Path) -> None:
    """The eleven sizes of SMF 115, QIS1."""
    with (shared / "fixtures/smf/expected/SMF_MQ1000-QIS1.csv").open() as file:
        rows = list(csv.DictReader(file))
    totals = {int(row["Total_Pages"]) for row in rows} - {0}
    assert totals == set(ALLOCATED)
    assert {page_set.usable_pages(allocated) for allocated in ALLOCATED.values()} == totals
    for row in rows:
        parts = [int(row[f"{name}_Pages"]) for name in ("Unused", "Persistent", "Nonpersistent")]
        assert int(row["Total_Pages"]) == sum(parts)


# -- one short message a page, since 7.0.1


def test_each_short_message_has_a_page_and_so_has_control_information() -> None:
    driver = PageSetDriver()
    assert pages(driver.put(100, count=3)) == (3, 0, 3, 95)
    assert pages(driver.put(5000, persistent=True)) == (6, 3, 3, 92)  # 2 pages, and one of the control information
    assert pages(driver.get()) == (5, 3, 2, 93)


def test_100_messages_of_11_bytes_take_about_the_102_pages_that_were_measured() -> None:
    """Check SMF records of MQ 8.0. Packed they would take 10."""
    measured = 102
    assert abs(PageSetDriver(version="8.0", pages=1000).put(11, count=100)["pages_used"] - measured) <= 0.02 * measured
    assert PageSetDriver(version="7.0.0", pages=1000).put(11, count=100)["pages_used"] == 10


@pytest.mark.parametrize(
    ("version", "packed"),
    [(None, False), ("9.4", False), ("10.0.0", False), ("7.0.1", False), ("7.0.0", True), ("7.0", True), ("6", True)],
)
def test_short_messages_share_pages_before_7_0_1(version: str | None, packed: bool) -> None:
    assert PageSetDriver(version=version).put(100, count=3)["pages_used"] == (1 if packed else 3)


# -- packed


def test_a_short_message_goes_to_the_next_available_space_or_the_next_page() -> None:
    """Short messages: "if there is not enough space available, on the next page"; what is left remains unused."""
    driver = PageSetDriver(version="7.0.0")
    assert driver.put(1628, count=2)["pages_used"] == 1  # 2,000 bytes each: 57 are left
    assert driver.put(0)["pages_used"] == 2
    assert driver.put(3685 - 372)["pages_used"] == 2  # fills it to the last byte
    assert driver.put(0)["pages_used"] == 3


def test_control_information_of_a_long_message_is_stored_like_a_short_one() -> None:
    """Long messages: "stores control information that points to these pages in the same way"."""
    driver = PageSetDriver(version="6.0")
    assert driver.put(5000)["pages_used"] == 3
    assert driver.put(5000)["pages_used"] == 5
    assert driver.put(100)["pages_used"] == 5


def test_a_shared_page_is_free_when_its_last_record_is_gone() -> None:
    driver = PageSetDriver(version="6.0")
    driver.put(3000, msgid="A")  # 3,372 bytes: 685 are left
    driver.put(300, msgid="B")
    assert driver.get(msgid="A")["pages_used"] == 1
    assert driver.put(100, msgid="C")["pages_used"] == 2
    driver.get(msgid="C")
    assert driver.get(msgid="B")["pages_used"] == 0
    assert driver.put(3685)["pages_used"] == 1


def test_a_page_with_a_persistent_message_counts_as_persistent() -> None:
    driver = PageSetDriver(version="6.0")
    driver.put(100)
    assert pages(driver.put(100, persistent=True, msgid="P")) == (1, 1, 0, 97)
    assert pages(driver.get(msgid="P")) == (1, 0, 1, 97)


# -- expansion


def test_system_expands_by_a_tenth_before_more_than_90_percent_are_used() -> None:
    driver = PageSetDriver(expand="SYSTEM")
    assert driver.put(count=88)["expansions"] == 0
    state = driver.put()
    assert (state["expansions"], state["pages_total"], state["status"]) == (1, 108, "NORMAL")


def test_user_expands_by_the_secondary_extent_as_often_as_a_message_needs() -> None:
    state = PageSetDriver(expand="USER", secondary_pages=50).put(MIB4)  # 1,037 pages: of 1,152.2 they are 90 %
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
def test_a_page_set_that_cannot_expand_is_full(fields: dict[str, Any], status: str) -> None:
    driver = PageSetDriver(**fields)
    state = driver.put(count=98)
    assert (state["status"], state["expansions"], state["overfull_puts"]) == (status, 0, 0)
    state = driver.put(count=2)
    assert (state["overfull_puts"], state["pages_used"], state["pages_unused"]) == (2, 100, 0)
    assert state["usage_pct"] == pytest.approx(100 * 100 / 98, abs=0.001)


def test_there_are_119_expansions_at_most() -> None:
    state = PageSetDriver(expand="USER", secondary_pages=1).put(MIB4)
    assert (state["status"], state["expansions"], state["pages_total"]) == ("MAXIMUM", 119, 217)


# -- units of work, restart, direct, 2192


def test_a_put_takes_its_pages_before_the_commit_and_a_get_keeps_them_until_it() -> None:
    driver = PageSetDriver()
    assert pages(driver.put(uow="U"))[0] == 1
    assert pages(driver.did("BACKOUT", uow="U"))[0] == 0
    driver.put(msgid="A")
    assert pages(driver.get(msgid="A", uow="V"))[0] == 1
    assert pages(driver.did("COMMIT", uow="V"))[0] == 0


def test_a_get_that_came_before_its_put_leaves_nothing_behind() -> None:
    driver = PageSetDriver(version="6.0")
    driver.get(msgid="A")
    state = driver.put(5000, msgid="A")
    assert (pages(state)[0], state["messages"], state["unmatched_gets"]) == (0, 0, 0)


def test_a_duplicate_changes_nothing_but_its_count() -> None:
    driver = PageSetDriver()
    driver.put(seq=1)
    state = driver.put(seq=1)
    assert (pages(state)[0], state["duplicates"]) == (1, 1)


def test_a_put_to_a_waiting_getter_takes_no_page() -> None:
    assert pages(PageSetDriver().put(direct=True))[0] == 0


def test_a_put_refused_with_2192_takes_no_page() -> None:
    state = PageSetDriver().put(reason=2192)
    assert (pages(state)[0], state["full_puts"]) == (0, 1)


def test_after_a_restart_only_committed_persistent_messages_are_there() -> None:
    """Check docs/events.md: units of work are backed out, then the nonpersistent messages go; numbering begins anew."""
    driver = PageSetDriver(version="6.0", pages=1000)
    driver.put(5000, count=3, seq=7)
    driver.put(100, persistent=True)
    driver.put(100, persistent=True, uow="U")
    driver.get(uow="V")
    state = driver.did("RESTART", None, store="QM01/PS04")
    assert (pages(state)[:3], state["messages"], state["uncommitted"]) == ((1, 1, 0), 1, 0)
    state = driver.put(seq=7)
    assert (state["duplicates"], state["messages"]) == (0, 2)


# -- ALTER


def test_what_an_alter_takes_and_refuses() -> None:
    driver = PageSetDriver(expand="SYSTEM")
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


@pytest.mark.parametrize("change", [{"expand": "SYSTEM"}, {"secondary_pages": 10}, {"pages": 101}])
def test_an_alter_of_what_makes_it_expand_lets_it_try_again(change: dict[str, Any]) -> None:
    driver = PageSetDriver(expand="USER", secondary_pages=0)
    assert driver.put(count=90)["status"] == "FAILED"
    assert driver.alter(buffer_pool=1)["status"] == "FAILED"
    assert driver.alter(**change)["status"] == "NORMAL"


def test_a_data_set_that_the_estate_says_anew_has_no_extents() -> None:
    driver = PageSetDriver(expand="SYSTEM", pages=100)
    driver.put(count=95)
    saved = driver.twin.header(), dict(driver.twin.dirty_pages()).items()
    for fields, total, expansions in (
        ({"pages": 100}, 108, 1),
        ({"pages": 300}, 298, 0),
        ({"version": "6"}, 108, 1),
    ):
        again = PageSetDriver(**({"expand": "SYSTEM", "pages": 100} | fields))
        again.twin = again.decoding.twin(None, *saved)
        state = again.state()
        assert (state["pages_total"], state["expansions"], state["pages_used"]) == (total, expansions, 95)
        expected = 96 if "version" in fields else 97
        assert again.put(count=2)["pages_used"] == expected


# -- MEASURE


def test_what_a_measure_finds_beyond_the_model_counts_and_is_drawn_down() -> None:
    driver = PageSetDriver()
    driver.put(count=2)
    state = driver.measure(pages_persistent=10, pages_nonpersistent=7, messages=12)
    assert pages(state) == (17, 10, 7, 81)
    assert state["baseline"] == {"messages": 10, "pages_persistent": 10, "pages_nonpersistent": 5}
    assert (state["messages"], state["drift_pct"]) == (12, 0.0)
    state = driver.get(queue="A.QUEUE", count=7)  # 2 of the model, 5 of the baseline
    assert (pages(state), state["messages"]) == ((8, 5, 3, 90), 5)


def test_a_restart_takes_the_nonpersistent_part_of_the_baseline() -> None:
    driver = PageSetDriver()
    driver.measure(pages_persistent=20, pages_nonpersistent=10, messages=30)
    driver.get(count=15)
    state = driver.did("RESTART", None, store="QM01/PS04")
    assert (pages(state)[:3], state["messages"]) == ((10, 10, 0), 10)
    assert pages(driver.get(count=5))[0] == 5


@pytest.mark.parametrize(
    ("measured", "messages", "persistent", "nonpersistent"),
    [
        ({"pages_used": 30}, 30, 30, 0),
        ({"pages_used": 30, "pages_persistent": 10}, 30, 10, 20),
        ({"pages_used": 30, "pages_nonpersistent": 10}, 30, 20, 10),
        ({"pages_persistent": 7, "messages": 100}, 100, 7, 0),
        ({"messages": 5}, 5, 0, 0),
    ],
)
def test_a_baseline_of_what_was_measured(
    measured: dict[str, int], messages: int, persistent: int, nonpersistent: int
) -> None:
    expected = {"messages": messages, "pages_persistent": persistent, "pages_nonpersistent": nonpersistent}
    assert PageSetDriver().measure(**measured)["baseline"] == expected


def test_drift_is_the_worst_of_the_pages_measured() -> None:
    driver = PageSetDriver()
    driver.put(count=20)
    driver.measure(pages_used=20)
    state = driver.measure(pages_persistent=10, pages_nonpersistent=19)
    assert state["drift_pct"] == pytest.approx(-100 * 10 / 98, abs=0.001)


def test_the_marks_of_the_buffer_pool_are_told_where_it_is_measured() -> None:
    """Check docs/storage-model.md: asynchronous writes from 85 % used, synchronous from 95 %."""
    driver = PageSetDriver(buffer_pool=3)
    assert (driver.state()["buffer_pool"], driver.state()["buffer_pool_pct"], driver.state()["buffer_pool_writes"]) == (
        *(3, None, None),
    )
    results = [driver.measure(buffer_pool_pct=pct)["buffer_pool_writes"] for pct in (84.9, 85, 94.9, 95)]
    assert results == ["none", "asynchronous", "asynchronous", "synchronous"]
    assert driver.again().state()["buffer_pool_pct"] == 95
    assert driver.state()["baseline"] is None
    assert driver.measure(pages_used=4)["baseline"] is not None


# -- several queues


def test_queues_of_a_page_set_share_its_pages() -> None:
    """Calculating the storage requirement: "all the queues that map to the page set"."""
    driver = PageSetDriver(queues=3, version="6.0")
    driver.put(queue="A.QUEUE")
    state = driver.put(queue="B.QUEUE", count=2)
    assert state["pages_used"] == 1
    assert [(queue["name"], queue["depth"]) for queue in state["queues"]] == [("B.QUEUE", 2), ("A.QUEUE", 1)]
