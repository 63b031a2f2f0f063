"""The oracle of storage class memory and of automatic alter, against cases worked by hand."""

from typing import Any

import pytest

from tests.naive.estates import ENTRY_AND_6_ELEMENTS
from tests.naive.pools import elements_of_length, pools_of_size
from tests.naive.scm import bytes_of
from tests.support.oracle_driver import OracleDriver, OracleScmDriver
from tests.support.workloads import SECOND_US

SLOW = {"scm_prestage_rate": 1024**2, "scm_prefetch_rate": 1024**2}  # a block of 4 KB in 3,906.25 microseconds
MILLISECOND = 0.001
GIB = 1024**3


def moved(state: dict[str, Any]) -> tuple[int, ...]:
    """Return entries in use, messages in SCM, and counts of messages moved and read."""
    return state["ents_used"], *(state["scm"][name] for name in ("messages", "prestaged", "prefetched", "faults"))


def filled(count: int = 34, **fields: Any) -> OracleScmDriver:
    """Return a structure with 34 of 38 entries and 68 of 232 elements in use, the most without pre-staging."""
    twin = OracleScmDriver(**fields)
    twin.put(100, count=count)
    return twin


# -- pre-staging


def test_nothing_moves_up_to_90_percent_and_one_message_for_each_above() -> None:
    twin = filled()
    assert moved(twin.wait(10)) == (34, 0, 0, 0, 0)
    assert moved(twin.put(100)) == (34, 1, 1, 0, 0)
    assert moved(twin.put(100, count=4)) == (37, 2, 2, 0, 0)  # one moves at once, the others in turn
    assert moved(twin.wait(1)) == (34, 5, 5, 0, 0)
    assert twin.state()["messages"] == 39
    assert twin.state()["overfull_puts"] == 0


def test_elements_count_as_entries_do() -> None:
    twin = OracleScmDriver()
    state = twin.put(32_768)  # 130 elements of 232
    assert moved(twin.put(20_000)) == (1, 1, 1, 0, 0)  # 80 more: 210 are more than 90 %
    assert (state["elems_used"], twin.state()["elems_used"], twin.in_scm()) == (130, 130, [20_000])


def test_the_lowest_priority_goes_first_and_of_it_the_one_put_last() -> None:
    twin = OracleScmDriver()
    for length in range(1, 18):
        twin.put(length, priority=5)
        twin.put(100 + length, priority=0 if length in {3, 7} else 9)
    for expected in ([107], [103, 107], [17, 103, 107], [16, 17, 103, 107]):
        twin.put(99, priority=9)
        assert twin.in_scm() == sorted(expected, key=twin.lengths().index)
    twin.put(98, priority=0)
    assert twin.in_scm()[-1] == 98


def test_one_message_moves_at_a_time_at_the_speed_of_its_blocks() -> None:
    twin = filled(0, **SLOW)
    twin.put(100, count=38)
    assert moved(twin.wait(3.906 * MILLISECOND))[:2] == (37, 1)
    assert moved(twin.wait(0.001 * MILLISECOND))[:2] == (36, 2)
    assert moved(twin.wait(3.905 * MILLISECOND))[:2] == (36, 2)  # 7.8125 ms are not over yet
    assert moved(twin.wait(0.001 * MILLISECOND))[:2] == (35, 3)
    assert moved(twin.wait(60))[:2] == (34, 4)


def test_a_message_of_more_blocks_takes_longer() -> None:
    twin = OracleScmDriver(**SLOW)
    twin.put(32_768)
    twin.put(20_000, priority=0)  # 81 x 256 bytes: 6 blocks, 23.4375 ms
    twin.put(20_000, priority=0)
    assert moved(twin.wait(23.437 * MILLISECOND))[1] == 2  # a second has passed between the puts


def test_an_uncommitted_put_moves_and_a_message_that_was_got_does_not() -> None:
    twin = filled(33)
    twin.put(1, uow="U")
    twin.put(2)
    assert twin.in_scm() == [2]
    twin.get(uow="V", priority=0)  # the oldest: it stays in use
    twin.put(3)
    assert twin.in_scm() == [2, 3]
    twin.put(4, count=40, priority=1)
    twin.wait(60)
    assert moved(twin.state())[:2] == (34, 42)  # all of priority 0 but what was got, and 7 of priority 1
    assert [message.priority for message in twin.messages if not message.in_scm] == [0] + [1] * 33


# -- pre-fetching


def test_at_or_below_70_percent_the_highest_priority_comes_back_first_and_of_it_the_oldest() -> None:
    twin = OracleScmDriver(**SLOW)
    twin.put(100, priority=9, count=34)
    for length, priority in ((1, 3), (2, 5), (3, 5), (4, 0)):
        twin.put(length, priority=priority)
    assert twin.in_scm() == [1, 2, 3, 4]
    twin.get(count=7)
    assert moved(twin.wait(1))[:2] == (27, 4)  # 27 of 38 are more than 70 %
    twin.get(count=2)
    assert twin.in_scm() == [1, 3, 4]
    twin.wait(60)
    assert (moved(twin.state())[:2], twin.in_scm()) == ((27, 2), [1, 4])
    twin.get(count=10)
    assert moved(twin.wait(60)) == (19, 0, 4, 4, 0)


def test_what_would_take_the_structure_above_90_percent_is_not_brought_back() -> None:
    twin = OracleScmDriver()
    twin.put(32_768, priority=9)  # 130 of 232 elements
    twin.put(30_000, priority=1)  # 119 more
    assert twin.in_scm() == [30_000]
    assert moved(twin.wait(60))[:4] == (1, 1, 1, 0)  # 56 % are in use; with it there would be more than 90 %
    twin.get()
    assert moved(twin.state()) == (1, 0, 1, 1, 0)


# -- faults


def test_a_get_of_a_message_in_scm_is_a_fault_that_waits_for_its_blocks() -> None:
    twin = filled(33)
    twin.put(100, msgid="A")
    twin.put(4096, msgid="B")  # 18 elements: 4,864 bytes, 2 blocks
    state = twin.get(msgid="B")
    assert (moved(state), state["scm"]["fault_wait_s"]) == ((34, 0, 1, 0, 1), 0.00055)
    state = twin.get(msgid="A")
    assert moved(state) == (33, 0, 1, 0, 1)


def test_a_message_read_for_a_get_that_is_backed_out_stays_in_the_structure() -> None:
    twin = filled()
    twin.put(100, msgid="B")
    assert moved(twin.get(msgid="B", uow="U"))[:2] == (34, 1)  # read, so another one has to go
    assert moved(twin.send("BACKOUT", uow="U")) == (34, 1, 2, 0, 1)


def test_expire_and_clear_read_nothing() -> None:
    twin = filled()
    twin.put(100, msgid="B")
    assert moved(twin.send("EXPIRE", msgid="B")) == (34, 0, 1, 0, 0)
    twin.put(100, msgid="C")
    assert moved(twin.send("CLEAR")) == (0, 0, 2, 0, 0)


# -- bounds


def test_the_sum_of_what_is_in_scm_is_in_blocks_of_4_kb() -> None:
    assert bytes_of(0, 0) == 0
    assert bytes_of(1, 2) == 4096
    assert bytes_of(5, 11) == 4096
    assert bytes_of(5, 12) == 8192


def test_5_gb_of_2_kb_messages_fit_into_4_gb_with_4_gb_of_scm_beside_it() -> None:
    """The published case of Q Replication at the end of the load: the structure and SCM hold all messages."""
    pools = pools_of_size(4 * GIB, 6, {"scm_max_size": 4 * GIB})
    messages, elements = 5 * GIB // 2048, elements_of_length(2048)
    in_scm = messages - min(pools.entries, pools.elements // elements)
    assert pools_of_size(4 * GIB, 6, {"scm_max_size": None}).elements // elements < messages
    assert 3.9 * GIB < bytes_of(in_scm, elements * in_scm) <= 4 * GIB


@pytest.mark.parametrize(
    "fields",
    [
        {"scm_max_size": 8192},
        {"scm_max_size": 12_287},
        {"facility_scm": 8192},
        {"left_for_augmented": 164},  # 2 % of 8,192 bytes
        {"left_for_augmented": 245},
    ],
)
def test_where_scm_or_augmented_space_has_no_room_nothing_moves_and_the_structure_fills(fields: dict[str, int]) -> None:
    twin = filled(**fields)
    for count in (4, 4, 2):  # 10 messages of 768 bytes are 7,680
        twin.put(100, count=count)
        twin.wait(1)
    state = twin.put(100)
    assert (moved(state)[:2], state["overfull_puts"]) == ((35, 10), 0)
    assert (state["scm"]["used"], state["scm"]["aug_dynamic"]) == (8192, 164)
    state = twin.put(100, count=4)
    assert (moved(state)[:2], state["overfull_puts"]) == ((39, 10), 1)


def test_without_scm_of_its_coupling_facility_a_structure_has_none() -> None:
    state = filled(38, facility_scm=None).wait(1)
    assert (moved(state)[:2], state["scm"]["max"], state["scm"]["aug_fixed"]) == ((38, 0), 0, 8 * 1024**2)


# -- ALTER, REBUILD, automatic alter


def test_nothing_can_be_altered_while_data_is_in_scm() -> None:
    twin = filled(35)
    assert twin.state()["alterable"] is False
    assert twin.alter(offld1_th=50)["refused_alters"] == 1
    twin.get(count=30)
    assert twin.wait(1)["alterable"] is True
    assert twin.alter(offld1_th=50)["refused_alters"] == 1
    assert twin.attributes["offld1_th"] == 50


def test_a_rebuild_adds_scm_and_takes_it_away() -> None:
    twin = OracleDriver(offld1_sz=65_536, offld2_sz=65_536, offld3_sz=65_536)
    assert twin.put(100, count=38)["scm"] is None
    state = twin.rebuild(scm_max_size="1M")
    assert (state["ents_max"], moved(state)[:2]) == (38, (37, 1))
    assert moved(twin.wait(1))[:2] == (34, 4)
    state = twin.rebuild(scm_max_size=None)
    assert (state["ents_max"], state["ents_used"], state["scm"]) == (40, 38, None)
    assert moved(twin.rebuild(scm_max_size="1M")) == (37, 1, 1, 0, 0)


def automatic(**fields: Any) -> OracleDriver:
    """Return a structure of 40 entries that may grow to 80."""
    sizes = {"size": 80 * ENTRY_AND_6_ELEMENTS, "init_size": 40 * ENTRY_AND_6_ELEMENTS}
    no_rules = {f"offld{n}_sz": 65_536 for n in (1, 2, 3)}
    return OracleDriver(**sizes, **no_rules, **{"allow_auto_alter": True, "full_threshold": 80} | fields)


def test_automatic_alter_takes_the_ratio_in_use_every_60_seconds() -> None:
    twin = automatic()
    twin.put(100, count=32)  # 32 of 40 entries, 64 of 240 elements
    state = twin.send("HEARTBEAT", None, time=twin.time - twin.time % (60 * SECOND_US) + 60 * SECOND_US - 1)
    assert (state["ents_max"], state["elems_max"]) == (40, 240)
    state = twin.send("HEARTBEAT", None, time=twin.time + 1)
    assert state["ents_max"] == 40 * ENTRY_AND_6_ELEMENTS // (695 + 512)
    assert (state["elems_max"], state["size"]) == (2 * state["ents_max"], 40 * ENTRY_AND_6_ELEMENTS)


def test_where_the_ratio_does_not_help_the_structure_grows_by_a_tenth_up_to_size() -> None:
    twin = automatic()
    twin.put(1164, count=40)  # 6 elements each: both pools are full
    sizes = [twin.wait(60)["size"] for _ in range(9)]
    assert sizes[0] == 40 * ENTRY_AND_6_ELEMENTS * 11 // 10
    assert sizes == sorted(sizes)
    assert twin.state()["usage_pct"] < 80
    twin.put(1164, count=40)
    for _ in range(9):
        twin.wait(60)
    assert twin.state()["size"] == 80 * ENTRY_AND_6_ELEMENTS


@pytest.mark.parametrize("fields", [{"allow_auto_alter": False}, {"full_threshold": 0}, {"full_threshold": 96}])
def test_a_structure_is_not_altered_below_its_threshold_or_where_that_is_not_allowed(fields: dict[str, Any]) -> None:
    twin = automatic(**fields)
    twin.put(100, count=38)
    assert twin.wait(600)["ents_max"] == 40


def test_automatic_alter_is_refused_each_time_while_data_is_in_scm() -> None:
    twin = OracleScmDriver(allow_auto_alter=True)
    twin.time -= twin.time % (60 * SECOND_US)
    twin.put(100, count=35)
    state = twin.wait(180)
    assert (state["refused_alters"], state["ents_max"]) == (3, 38)
