"""SMF 115 and 116: real data sets with values of another program, and made-up records of sections without real data."""

from __future__ import annotations

import csv
import struct
from datetime import UTC, datetime

import pytest

from kernels.page_set import allocated_pages
from tests.twin.feeds.read import read, total
from tests.twin.feeds.smf_made import END, MINUTE, data_set, queue_statistics, record, section, segmented
from twin.feeds import Complaint, Page, PassedOver
from twin.feeds.smf_layout import QIS1, QPST, WQ, WTAS
from twin.feeds.smf_records import Segments, records


def rows(shared, name):
    """Return the rows of a CSV file of mq-smf-csv: names of columns to texts without blanks and signs."""
    with (shared / "fixtures" / "smf" / "expected" / name).open(encoding="utf-8", newline="") as file:
        return [{key: value.strip(' ="') for key, value in row.items() if key} for row in csv.DictReader(file)]


def data_set_of(shared, name):
    return (shared / "fixtures" / "smf" / name).read_bytes()


def real_records(shared, name):
    """Return the records of MQ in a data set, and the complaints about it."""
    items = [
        item for item in records(Page(data_set_of(shared, name), name), Segments()) if not isinstance(item, PassedOver)
    ]
    complaints = [item for item in items if isinstance(item, Complaint)]
    return [item for item in items if item not in complaints], complaints


def local(row):
    """Return the time of a row, as if it were UTC, in microseconds."""
    text = f"{row['Date']} {row['Time'].replace(',', '.')}"
    return int(datetime.strptime(text, "%Y/%m/%d %H:%M:%S.%f").replace(tzinfo=UTC).timestamp() * 1e6)


def sections(all_records, eyecatcher):
    return [(r, data) for r in all_records for name, data in r.sections if name == eyecatcher]


# --- real data sets --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "hours", "count"), [("SMF_MQ1000.dat", 1, 707), ("TEST115.dat", -6, 3), ("TEST116.dat", -6, 3)]
)
def test_every_record_of_a_data_set_is_read_and_has_its_own_utc_offset(shared, name, hours, count):
    read_records, complaints = real_records(shared, name)
    assert complaints == []
    assert len(read_records) == count
    with_clock = [r for r in read_records if r.end != r.header_us]
    assert with_clock
    for r in with_clock:
        assert abs(r.header_us - r.end - hours * 3_600_000_000) < 1_500_000


def test_the_group_and_the_true_version_come_from_the_record(shared):
    read_records, _ = real_records(shared, "SMF_MQ1000.dat")
    assert {(r.qmgr, r.group) for r in read_records} >= {("MQ1A", "SQ29"), ("MQ1O", "SQ13"), ("MQ51", "")}
    assert {r.version for r in read_records} == {"100000"}
    assert real_records(shared, "TEST115.dat")[0][0].version == "800"


def test_the_date_of_a_made_up_header_is_that_of_its_time():
    """A header has the local time of the clock value in the zone of its LPAR, as in real records."""
    (header_record,) = records(Page(record(216, [queue_statistics()], offset_hours=1), "made"), Segments())
    assert header_record.header_us == END + 3_600_000_000


def test_a_record_in_segments_is_put_together(shared):
    read_records, _ = real_records(shared, "SMF_MQ1000.dat")
    lengths = {len(r.data) for r in read_records if (r.type, r.subtype) == (115, 5)}
    assert 9920 in lengths


COLUMNS_OF_QIS1 = {
    "Total_Pages": "pages_total",
    "Unused_Pages": "pages_unused",
    "Persistent_Pages": "pages_persistent",
    "Nonpersistent_Pages": "pages_nonpersistent",
    "Expansions": "expansions",
}


def test_page_sets_are_measured_as_in_the_csv(shared):
    events, intake = read("smf", data_set_of(shared, "SMF_MQ1000.dat"))
    expected = [row for row in rows(shared, "SMF_MQ1000-QIS1.csv") if row["Total_Pages"] != "0"]  # 8 are not online
    measures = [event for event in events if "pages_total" in event["measured"]]
    assert len(measures) == len(expected) > 200
    for event, row in zip(measures, expected, strict=True):
        assert event["store"] == f"{row['QMgr']}/PS{int(row['Pageset']):02d}"
        assert {column: event["measured"][name] for column, name in COLUMNS_OF_QIS1.items()} == {
            column: int(row[column]) for column in COLUMNS_OF_QIS1
        }
        assert abs(local(row) - event["time"] - 3_600_000_000) < 1_500_000
    offline = [complaint.text.partition(" is ")[0] for complaint in intake.complaints]
    assert dict(intake.counts) == {"offline": len(offline)}
    assert [text for text in offline if text.startswith("page set")] == ["page set 7 of MQ1A"]
    assert intake.facts.value("page_set", "MQ51/0", "pages") == 50040
    assert intake.facts.value("page_set", "MQ51/0", "expand") == "USER"


def test_the_first_record_with_page_sets_has_the_documented_figures(shared):
    events, _ = read("smf", data_set_of(shared, "SMF_MQ1000.dat"))
    assert events[0] == {
        "time": 1_779_377_400_001_128,  # 16:30:00.00 local, 15:30 UTC
        "qmgr": "MQ51",
        "op": "MEASURE",
        "store": "MQ51/PS00",
        "measured": {
            "pages_total": 50035,
            "pages_unused": 49995,
            "pages_persistent": 40,
            "pages_nonpersistent": 0,
            "pages_used": 40,
            "expansions": 0,
        },
    }


@pytest.mark.parametrize("name", ["SMF_MQ1000", "TEST115"])
def test_peaks_of_structures_are_the_largest_of_the_csv(shared, name):
    _, intake = read("smf", data_set_of(shared, f"{name}.dat"))
    largest: dict[str, tuple[int, int]] = {}
    for row in rows(shared, f"{name}-QEST.csv"):
        structure = row["Structure_Name"]
        before = largest.get(structure, (0, 0))
        values = int(row["Max_In_Use_Entries"]), int(row["Max_In_Use_Elements"])
        largest[structure] = max(before[0], values[0]), max(before[1], values[1])
    peaks: dict[str, tuple[int, int]] = {}
    for store, peak in intake.peaks.items():
        structure = store.partition("/")[2]
        before = peaks.get(structure, (0, 0))
        peaks[structure] = max(before[0], peak.entries), max(before[1], peak.elements)
    assert peaks == {structure: pair for structure, pair in largest.items() if pair != (0, 0)}


def test_a_peak_of_zero_is_not_an_empty_structure(shared):
    """Five intervals of MQ1A show 0/0 between two that show 34/64: only the calls of one queue manager count."""
    events, intake = read("smf", data_set_of(shared, "SMF_MQ1000.dat"))
    peak = intake.peaks["SQ29/APPLICATION1"]
    assert (peak.entries, peak.elements) == (34, 64)
    assert not [event for event in events if event["store"].startswith("SQ29/")]


@pytest.mark.parametrize("name", ["SMF_MQ1000", "TEST115"])
def test_calls_of_queue_managers_are_those_of_the_csv(shared, name):
    _, intake = read("smf", data_set_of(shared, f"{name}.dat"))
    puts: dict[str, int] = {}
    gets: dict[str, int] = {}
    for row in rows(shared, f"{name}-QMST.csv"):
        puts[row["QMgr"]] = puts.get(row["QMgr"], 0) + int(row["Put"]) + int(row["Put1"])
        gets[row["QMgr"]] = gets.get(row["QMgr"], 0) + int(row["Get"])
    covered = {cover.qmgr: cover for cover in intake.coverage.values() if cover.source == "QMST"}
    assert {qmgr: cover.puts for qmgr, cover in covered.items()} == puts
    assert {qmgr: cover.gets for qmgr, cover in covered.items()} == gets


def test_data_sets_without_blocks_are_not_measured(shared):
    """The SMDS of the fixture are all closed: every count of their 34 rows is 0."""
    read_records, _ = real_records(shared, "SMF_MQ1000.dat")
    expected = rows(shared, "SMF_MQ1000-QESD.csv")
    data_sets = sections(read_records, "QESD")
    assert [(r.qmgr, data[8:20].decode("cp037").strip()) for r, data in data_sets] == [
        (row["QMgr"], row["Structure"]) for row in expected
    ]
    events, _ = read("smf", data_set_of(shared, "SMF_MQ1000.dat"))
    assert not [event for event in events if "smds" in event["measured"]]


def test_accounting_of_queues_gives_puts_with_true_lengths(shared):
    events, intake = read("smf", data_set_of(shared, "TEST116.dat"), flows="accounting")
    assert sorted((event["op"], event["length"], event["count"]) for event in events) == [
        ("PUT", 354, 1),
        ("PUT", 713, 1),
    ]
    assert {event["qmgr"] for event in events} == {"MQPC"}
    assert intake.facts.value("storage_class", "MQPC/PS05", "page_set") == 5


def test_without_statistics_the_user_is_pointed_to_accounting(shared):
    events, intake = read("smf", data_set_of(shared, "TEST116.dat"))
    assert events == []
    assert dict(intake.counts) == {"no-statistics": 1}


@pytest.mark.parametrize("name", ["SMF_MQ1000.dat", "TEST115.dat", "TEST116.dat"])
def test_a_dump_without_rdw_is_read_like_one_with_it(shared, name):
    data = data_set_of(shared, name)
    bare, position = b"", 0
    whole = real_records(shared, name)[0]
    while position < len(data):
        length, segment = struct.unpack_from(">HB", data, position)
        if segment == 0 and data[position + 5] in {115, 116}:
            bare += data[position + 4 : position + length]
        position += length
    without = list(records(Page(bare, "bare"), Segments()))
    unsegmented = [r for r in whole if len(r.data) < 32_000 and struct.unpack_from(">B", r.data, 2)[0] == 0]
    assert [(r.qmgr, r.subtype, r.end, r.sections) for r in without] == [
        (r.qmgr, r.subtype, r.end, r.sections) for r in unsegmented
    ]


# --- page sets and buffer pools --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("usable", "allocated"),
    [(538, 540), (1618, 1620), (50035, 50040), (600441, 600480), (963659, 963720), (10, 12), (70, 72)],
)
def test_the_allocated_pages_of_a_page_set_are_a_whole_number_of_tracks(usable, allocated):
    assert allocated_pages(usable) == allocated


def page_set(**values):
    usual = {"page_set": 4, "buffer_pool": 3, "total": 100, "unused": 90, "persistent": 10}
    return section(QIS1, 104, **(usual | values))


def test_a_page_set_whose_sum_is_wrong_is_a_complaint():
    events, intake = read("smf", record(201, [page_set(), page_set(unused=91), page_set(page_set=100)]))
    assert len(events) == 1
    assert dict(intake.counts) == {"inconsistent": 2}


def test_a_page_set_that_is_not_online_is_not_measured():
    events, intake = read("smf", record(201, [page_set(total=0, unused=0, persistent=0)]))
    assert (events, dict(intake.counts)) == ([], {"offline": 1})


def test_the_usage_of_a_buffer_pool_is_measured_for_its_page_sets(estate):
    pool = section(QPST, 104, pool=3, buffers=50_000, stealable=10_000)
    events, _ = read("smf", record(201, [page_set()]) + record(215, [pool]), estate=estate)
    assert events[1]["measured"] == {"buffer_pool": 3, "buffer_pool_pct": 80.0}
    assert events[1]["store"] == "QM01/PS04"


# --- shared message data sets: made-up records -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("used", "free", "blocks_used"),
    [(30, 68, 32), (32, 68, 32)],
    ids=["blocks in use are data blocks", "blocks in use include the space map"],
)
def test_blocks_in_use_include_the_space_map(used, free, blocks_used):
    values = {"blocks_total": 100, "blocks_map": 2, "messages": 7}
    events, intake = read("smf", record(2, [data_set(blocks_used=used, blocks_free=free, **values)]))
    assert events[0]["store"] == "QSG1/APP1"
    assert events[0]["measured"] == {"smds": {"QM01": {"blocks_total": 100, "blocks_used": blocks_used, "messages": 7}}}
    assert intake.facts.group_of("QM01") == "QSG1"


def test_blocks_that_do_not_add_up_are_a_complaint():
    _, intake = read("smf", record(2, [data_set(blocks_total=100, blocks_used=5, blocks_free=5)]))
    assert dict(intake.counts) == {"inconsistent": 1}


def test_the_group_of_an_old_record_comes_from_the_estate(estate):
    section_bytes = data_set(blocks_total=100, blocks_used=10, blocks_free=90)
    events, _ = read("smf", record(2, [section_bytes], group=""), estate=estate)
    assert events[0]["store"] == "QSG1/APP1"
    _, intake = read("smf", record(2, [section_bytes], group="", qmgr="QM09"), estate=estate)
    assert dict(intake.counts) == {"no-group": 1}


# --- statistics of queues: made-up records ---------------------------------------------------------------------------


def test_counts_and_bytes_of_a_queue_are_exact(estate):
    events, intake = read("smf", record(216, [queue_statistics()]), estate=estate)
    assert total(events, "PUT", persistent=True) == 50
    assert total(events, "PUT") == 100
    assert total(events, "PUT", "bytes", persistent=True) == 5_004
    assert total(events, "PUT", "bytes") == 10_007
    assert total(events, "GET") == 90
    assert {event["time"] for event in events} <= {END - MINUTE + 10_000_000 * (i + 1) for i in range(6)}
    cover = intake.coverage["QQST", "QM01", "ORDERS"]
    assert (cover.puts, cover.gets, cover.longest_us, cover.peak_error) == (100, 90, MINUTE, 22)


def test_rolled_back_calls_and_expired_messages_count(estate):
    values = {"puts_backed_out": 20, "gets_backed_out": 15, "expired": 4}
    events, _ = read("smf", record(216, [queue_statistics(**values)]), estate=estate)
    assert total(events, "PUT") == 80
    assert total(events, "GET") == 75
    assert total(events, "EXPIRE") == 4


def test_puts_of_an_earlier_interval_that_are_rolled_back_leave(estate):
    events, _ = read("smf", record(216, [queue_statistics(puts_backed_out=130, expired=4)]), estate=estate)
    assert total(events, "PUT") == 0
    assert total(events, "EXPIRE") == 34


def test_messages_handed_to_a_waiting_getter_are_stored_nowhere_and_their_gets_are_not_counted_again(estate):
    events, _ = read("smf", record(216, [queue_statistics(fast_puts=10, fast_bytes=1_001)]), estate=estate)
    assert total(events, "PUT", direct=True) == 10
    assert total(events, "PUT", "bytes", direct=True) == 1_001
    assert total(events, "PUT", direct=None) == 90
    assert total(events, "PUT", "bytes") == 10_007
    assert total(events, "GET") == 80


@pytest.mark.parametrize("length", [84, 120, 552, 672])
def test_a_section_of_any_version_is_read_as_far_as_it_goes(estate, length):
    events, intake = read("smf", record(216, [queue_statistics(length)]), estate=estate)
    assert total(events, "PUT") == (100 if length > 500 else 0)
    assert dict(intake.counts) == ({} if length > 500 else {"no-counts": 1})
    assert intake.facts.value("queue", "QSG1/ORDERS", "structure") == "APP1"


def test_queues_of_page_sets_belong_to_the_queue_manager(estate):
    private = {"queue": "LOCAL", "flags": 0, "page_set": 4, "group": "", "structure": ""}
    events, intake = read("smf", record(216, [queue_statistics(**private)]), estate=estate)
    assert total(events, "PUT") == 100
    assert intake.facts.value("queue", "QM01/LOCAL", "storage_class") == "PS04"


@pytest.mark.parametrize("values", [{"gets": 1 << 63}, {"puts_np": 1 << 40}, {"put_bytes_p": 1 << 50}])
def test_counts_that_cannot_be_are_one_complaint(estate, values):
    events, intake = read("smf", record(216, [queue_statistics(**values)]), estate=estate)
    assert ({event["op"] for event in events}, dict(intake.counts)) == ({"MEASURE"}, {"bad-value": 1})


def test_an_unknown_queue_is_kept_aside_with_its_structure(estate):
    events, intake = read("smf", record(216, [queue_statistics(queue="NEW")]), estate=estate)
    assert events == []
    assert intake.aside > 0
    (line,) = intake.lines_for_unknown()
    assert line.endswith('add [queue."QSG1/NEW"] structure = "APP1"')


# --- states of queues: made-up records -------------------------------------------------------------------------------

PRIVATE = {"queue": "LOCAL", "flags": 0, "page_set": 4, "group": "", "structure": ""}
UNCOMMITTED, PARTIAL = 0x20000000, 0x40000000


def states(events):
    """Return the measurements with facts of queues: time, queue manager, store, facts and who was asked."""
    return [
        (e["time"], e["qmgr"], e["store"], e["measured"]["queues"], e["measured"].get("asked"))
        for e in events
        if e["op"] == "MEASURE" and e["measured"].keys() <= {"queues", "asked"}
    ]


def facts(events):
    """Return the facts of the only queue of each measurement, without its name and depth."""
    return [
        {name: value for name, value in queue.items() if name not in {"name", "depth"}}
        for *_, (queue,), _ in states(events)
    ]


def shared(qmgr, minute=0, **values):
    return record(216, [queue_statistics(**values)], qmgr=qmgr, end=END + minute * MINUTE)


def test_the_state_of_a_private_queue_is_measured(estate):
    values = {"depth": 12, "input_handles": 0, "output_handles": 3, "oldest_age": 17}
    times = {"last_put": END - 1_000_000, "last_get": END - 60_000_000}
    events, _ = read("smf", record(216, [queue_statistics(**PRIVATE, **values, **times)]), estate=estate)
    queue = {
        "name": "LOCAL",
        "depth": 12,
        "getters": 0,
        "putters": 3,
        "uncommitted": 0,
        "oldest_s": 17,
        "last_get": "2026-11-20T11:59:00.000000Z",
        "last_put": "2026-11-20T11:59:59.000000Z",
    }
    assert states(events) == [(END, "QM01", "QM01/PS04", [queue], ["QM01"])]


@pytest.mark.parametrize(
    "values",
    [
        {},
        {"flags": UNCOMMITTED},
        {"oldest_age": 0xFFFFFFFF},
        {"last_put": END + 3_600_000_000, "last_get": 1_000_000},
        {"depth": -1},
    ],
    ids=["zeros", "uncommitted", "no age", "times that cannot be", "no depth"],
)
def test_what_a_record_does_not_know_of_a_queue_is_absent(estate, values):
    events, _ = read("smf", record(216, [queue_statistics(**(PRIVATE | values))]), estate=estate)
    (queue,) = facts(events)
    assert queue == {"getters": 0, "putters": 0} | ({} if "flags" in values else {"uncommitted": 0})


def test_a_partial_record_has_no_depth_and_no_age(estate):
    values = PRIVATE | {"flags": PARTIAL, "depth": 4, "oldest_age": 9, "input_handles": 2}
    events, intake = read("smf", record(216, [queue_statistics(**values)]), estate=estate)
    assert states(events)[0][3] == [{"name": "LOCAL", "getters": 2, "putters": 0}]
    assert dict(intake.counts) == {"partial": 1}


def test_handles_of_a_shared_queue_are_those_of_all_members(estate):
    """The first member alone says nothing about 0; the depth is that of the queue, not of a member."""
    data = shared("QM01", depth=5, oldest_age=3) + shared("QM02", depth=7, input_handles=2, output_handles=1)
    events, _ = read("smf", data + shared("QM01", 1, depth=9), estate=estate)
    assert states(events) == [
        (END, "QM01", "QSG1/APP1", [{"name": "ORDERS", "depth": 5, "oldest_s": 3}], ["QM01"]),
        (
            END,
            "QM02",
            "QSG1/APP1",
            [{"name": "ORDERS", "depth": 7, "getters": 2, "putters": 1, "uncommitted": 0, "oldest_s": 3}],
            ["QM01", "QM02"],
        ),
        (
            END + MINUTE,
            "QM01",
            "QSG1/APP1",
            [{"name": "ORDERS", "depth": 9, "getters": 2, "putters": 1, "uncommitted": 0}],
            ["QM01", "QM02"],
        ),
    ]


def test_nobody_reads_only_if_each_member_said_so_within_two_intervals(estate):
    data = b"".join([shared("QM02"), *(shared("QM01", minute) for minute in range(1, 4))])
    none = {"getters": 0, "putters": 0, "uncommitted": 0}
    events, _ = read("smf", data, estate=estate)
    assert facts(events) == [{}, none, none, {}]
    assert [asked for *_, asked in states(events)] == [["QM02"], ["QM01", "QM02"], ["QM01", "QM02"], ["QM01"]]


def test_a_queue_is_measured_once_an_interval_and_all_of_a_record_together(estate):
    both = record(216, [queue_statistics(), queue_statistics(**PRIVATE), queue_statistics(queue="NEW")])
    again = record(216, [queue_statistics(input_handles=4)])
    events, _ = read("smf", both + again, estate=estate)
    assert [(store, [queue["name"] for queue in queues]) for _, _, store, queues, _ in states(events)] == [
        ("QSG1/APP1", ["ORDERS"]),
        ("QM01/PS04", ["LOCAL"]),
    ]
    assert states(read("smf", both)[0]) == []


@pytest.mark.parametrize("flows", ["statistics", "accounting"])
def test_pages_of_a_record_measure_what_a_data_set_does(estate, flows):
    whole = [shared(qmgr, minute, input_handles=minute) for minute in range(5) for qmgr in ("QM01", "QM02")]
    imported, _ = read("smf", b"".join(whole), estate=estate, flows=flows)
    live, _ = read("smf", *whole, estate=estate, flows=flows)
    assert states(live) == states(imported)
    assert len(states(imported)) == 10


def test_statistics_and_accounting_of_a_queue_are_not_added_up(estate):
    wq = section(WQ, 2800, base_name="ORDERS", valid_puts=5, put_bytes=500, destructive_gets=5)
    data = record(216, [queue_statistics()]) + record(2, [wq], smf_type=116)
    statistics, _ = read("smf", data, estate=estate)
    accounting, _ = read("smf", data, estate=estate, flows="accounting")
    assert total(statistics, "PUT") == 100
    assert total(accounting, "PUT") == 5


def test_the_interval_of_a_long_task_is_that_of_its_record(estate):
    task = section(WTAS, 2800, start=END - 3 * MINUTE, end=END - MINUTE)
    wq = section(WQ, 2800, base_name="ORDERS", valid_puts=12, put_bytes=1_200, puts_p=12, opened=END - 99 * MINUTE)
    events, _ = read("smf", record(1, [task, wq], smf_type=116), estate=estate, flows="accounting")
    times = [event["time"] for event in events]
    assert END - 3 * MINUTE < min(times) <= max(times) <= END - MINUTE
    assert total(events, "PUT", "bytes", persistent=True) == 1_200


def test_a_record_without_any_time_has_no_events(estate):
    wq = section(WQ, 2800, base_name="ORDERS", valid_puts=1, put_bytes=100)
    data = bytearray(record(2, [wq], smf_type=116))
    position = struct.unpack_from(">I", data, 28)[0] + 16
    data[position : position + 8] = bytes(8)
    events, intake = read("smf", bytes(data), estate=estate, flows="accounting")
    assert (events, dict(intake.counts)) == ([], {"event-bad-time": 1})


# --- bad input -------------------------------------------------------------------------------------------------------


def test_a_second_copy_of_a_record_counts_once(estate):
    data = record(216, [queue_statistics()])
    events, intake = read("smf", data + data, data, estate=estate)
    assert total(events, "PUT") == 100
    assert dict(intake.counts) == {"copy": 2}


def test_reading_continues_behind_foreign_bytes(estate):
    data = record(216, [queue_statistics()]) + b"no SMF at all" + record(216, [queue_statistics()], end=END + MINUTE)
    events, intake = read("smf", data, estate=estate)
    assert total(events, "PUT") == 200
    assert dict(intake.counts) == {"foreign": 1}


def test_a_truncated_data_set_is_read_to_its_last_whole_record(estate):
    data = record(216, [queue_statistics()]) + record(216, [queue_statistics()], end=END + MINUTE)[:-10]
    events, intake = read("smf", data, estate=estate)
    assert total(events, "PUT") == 100
    assert dict(intake.counts) == {"truncated": 1}


def test_segments_without_their_first_or_last_are_complaints(estate):
    whole = record(216, [queue_statistics()])
    first, last = segmented(whole, 300)[:300], segmented(whole, 300)[300:]
    events, intake = read("smf", first + whole + last + segmented(whole, 200, 400, 600), estate=estate)
    assert dict(intake.counts) == {"segments": 2, "copy": 1}
    assert total(events, "PUT") == 100


def test_segments_are_put_together(estate):
    events, intake = read("smf", segmented(record(216, [queue_statistics()]), 200, 400), estate=estate)
    assert (total(events, "PUT"), intake.complaints) == (100, [])


def test_other_types_of_records_are_skipped(estate):
    other = bytearray(record(216, [queue_statistics()]))
    other[5] = 30
    events, intake = read("smf", bytes(other) + record(216, [queue_statistics()]), estate=estate)
    assert (total(events, "PUT"), intake.complaints) == (100, [])


def test_queue_managers_of_two_lpars_in_two_zones_have_one_clock(estate):
    one_side = record(216, [queue_statistics()], qmgr="QM01", lpar="LP01", offset_hours=1)
    other_side = record(216, [queue_statistics()], qmgr="QM02", lpar="LP02", offset_hours=-6)
    events, intake = read("smf", one_side + other_side, estate=estate)
    assert {event["time"] for event in events if event["qmgr"] == "QM01"} == {
        event["time"] for event in events if event["qmgr"] == "QM02"
    }
    assert intake.complaints == []


def test_a_queue_manager_that_reports_from_two_lpars_at_once_is_a_complaint(estate):
    data = record(216, [queue_statistics()], lpar="LP01") + record(216, [queue_statistics()], lpar="LP02", end=END + 1)
    _, intake = read("smf", data, estate=estate)
    assert dict(intake.counts) == {"two-lpars": 1}


def test_a_section_outside_of_its_record_is_a_complaint(estate):
    damaged = bytearray(record(216, [queue_statistics()]))
    struct.pack_into(">I", damaged, 36, 60_000)
    events, intake = read("smf", bytes(damaged), estate=estate)
    assert (events, dict(intake.counts)) == ([], {"damaged": 1})
