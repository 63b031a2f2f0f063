"""Bad input through Kafka and Spark, rule by rule: each bad event is one dead letter, and nothing else is affected.

One stream processes all bad records, with good ones between them, and the tests check its output case by case. The
numbers (`seq`) of the good events have no gaps, because a dead letter uses up no number.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.ipc
import pytest
from confluent_kafka.admin import AdminClient, NewTopic
from pyspark.sql import SparkSession

from tests.system.harness import Record, Stream
from tests.twin.events.poison import nulls, run_end
from twin.estate import Estate, load_estate
from twin.events import ARROW, JSON, NDJSON, Reason, to_table

pytestmark = pytest.mark.system

STORE, MIXED = "QSG1/APP1", "QSG1/MIXED"  # for good records; for records with both good and bad events
MIXED_QUEUES = tuple(f"MIXED.{number}" for number in range(10))  # as many as a state record lists
ESTATE = f"""
schema = 1
[coupling_facility.CF01]
size = "64G"
[queue_sharing_group.QSG1]
queue_managers = ["QM01", "QM02"]
[structure."{STORE}"]
coupling_facility = "CF01"
size = "16M"
cf_level = 5
[structure."{MIXED}"]
coupling_facility = "CF01"
size = "16M"
cf_level = 5
[queue."QSG1/ORDERS"]
structure = "APP1"
[page_set."QM01/4"]
pages = 20000
[storage_class."QM01/DEFAULT"]
page_set = 4
[queue."QM01/LOCAL.REPLIES"]
storage_class = "DEFAULT"
[queue_manager.QMD1]
platform = "distributed"
[queue_file."QMD1/INVOICES"]
max_size = "2T"
""" + "".join(f'[queue."QSG1/{queue}"]\nstructure = "MIXED"\n' for queue in MIXED_QUEUES)

TIME = 1_795_176_000_000_000  # 2026-11-20T12:00:00Z
HUGE = 11_000_000  # bytes; more than Kafka's default for a record
MIB = 1_048_576
DLQ_RECORD, DLQ_VALUE = MIB, MIB - 8192  # maximum bytes of a dead letter's record here; of its value
LONGEST_RECORD = 16_000_000


# --- cases -----------------------------------------------------------------------------------------------------------


def event(**fields: Any) -> dict[str, Any]:
    """Return a good PUT of 100 bytes with fields replaced, or left out where they are `...`."""
    fields = {"time": TIME, "qmgr": "QM01", "op": "PUT", "queue": "ORDERS", "length": 100, **fields}
    return {name: value for name, value in fields.items() if value is not ...}


def text(**fields: Any) -> bytes:
    return msgspec.json.encode(event(**fields))


def about_store(op: str, **fields: Any) -> bytes:
    """Return an event about STORE, without the fields that are about queues."""
    return text(**{"op": op, "queue": ..., "length": ..., "store": STORE, **fields})


def arrow(*tables: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, tables[0].schema) as writer:
        for table in tables:
            writer.write_table(table)
    return bytes(sink.getvalue().to_pybytes())


@dataclass(frozen=True)
class Letter:
    """An expected dead letter.

    Args:
        reason: its reason.
        detail: part of its detail.
        value: its bytes, or the row that its JSON text decodes to.
        index: index of the event in the record.
    """

    reason: Reason
    detail: str
    value: bytes | Mapping[str, Any]
    index: int = 0


@dataclass(frozen=True)
class Case:
    """A record and its expected dead letters.

    Args:
        name: name of the case.
        value: value of the record.
        letters: expected dead letters.
        content_type: content type of the record.
        good: number of its good puts, of 100 bytes each.
        queue: queue of the good puts, a queue of MIXED that no other case uses.
    """

    name: str
    value: bytes | None
    letters: tuple[Letter, ...]
    content_type: str | None = None
    good: int = 0
    queue: str = ""


def single(reason: Reason, name: str, value: bytes | None, detail: str = "", content_type: str | None = None) -> Case:
    """Return a case of a record that is a single bad event."""
    return Case(f"{reason}: {name}", value, (Letter(reason, detail, value or b""),), content_type)


def bad(reason: Reason, detail: str, /, **fields: Any) -> Case:
    """Return a case of a PUT with wrong fields."""
    return single(reason, msgspec.json.encode(fields).decode(), text(**fields), detail)


def without(op: str, name: str, **fields: Any) -> Case:
    """Return a case of an event that lacks a required field."""
    event_fields = {"length": ..., **fields, "op": op, name: ...}
    return single(Reason.MISSING_FIELD, f"{op} without {name}", text(**event_fields), f"{name} is missing")


R = Reason
SINGLES = [
    # The bytes.
    single(R.NOT_JSON, "words", b"these are words"),
    single(R.NOT_JSON, "cut off", text()[:-5], "truncated"),
    single(R.NOT_JSON, "two texts", text() + text(), "trailing"),
    single(R.NOT_JSON, "NaN", text(length=12321).replace(b"12321", b"NaN")),
    single(R.NOT_JSON, "no UTF-8 at all", b"\xff\xfe" + text()),
    single(R.NOT_JSON, "no UTF-8 in a string", text(qmgr="QM#1").replace(b"#", b"\xff"), "utf-8"),
    single(R.NOT_JSON, "UTF-16", text().decode().encode("utf-16")),
    single(R.NOT_JSON, "an empty value", b""),
    single(R.NOT_JSON, "a null value", None),
    single(R.NOT_JSON, "nested too deep", b"[" * 100_000, "nested"),
    single(R.NOT_JSON, "NDJSON sent as JSON", text() + b"\n" + text(), content_type=JSON),
    *(
        single(R.NOT_AN_OBJECT, value.decode(), value, "expected: an object")
        for value in (b"5", b'"x"', b"true", b"null")
    ),
    single(R.NOT_AN_OBJECT, "an array of events", b"[" + text() + b"]", "an array"),
    # Required fields.
    *(without("PUT", name, length=100) for name in ("time", "qmgr", "queue", "length")),
    single(R.MISSING_FIELD, "without op", text(op=...), "op is missing"),
    bad(R.MISSING_FIELD, "qmgr is missing", qmgr=None),
    *(without(op, "queue") for op in ("GET", "COMMIT", "BACKOUT", "EXPIRE", "CLEAR")),
    without("PREPARE", "uow"),
    *(without(op, "time") for op in ("RESTART", "HEARTBEAT")),
    *(without(op, "store", queue=..., attributes={"offld1_th": 60}) for op in ("ALTER", "REBUILD")),
    without("ALTER", "attributes", queue=..., store=STORE),
    without("MEASURE", "store", queue=..., measured={"messages": 1}),
    without("MEASURE", "measured", queue=..., store=STORE),
    # Types: an integer must be written as an integer, and nothing is guessed from a string.
    *(bad(R.WRONG_TYPE, "expected: an integer", length=value) for value in (5.0, "5", True, [5], {})),
    *(bad(R.WRONG_TYPE, "expected: an integer", **{name: "1"}) for name in ("seq", "count", "priority", "reason")),
    bad(R.WRONG_TYPE, "seq is 1.0", seq=1.0),
    *(bad(R.WRONG_TYPE, "true or false", **{name: 1}) for name in ("persistent", "direct")),
    bad(R.WRONG_TYPE, "true or false", persistent="true"),
    *(bad(R.WRONG_TYPE, "string", **{name: 1}) for name in ("qmgr", "queue", "msgid", "uow", "store")),
    bad(R.WRONG_TYPE, "expected: one of PUT, GET", op=1),
    *(bad(R.WRONG_TYPE, "RFC 3339", time=value) for value in (TIME + 0.5, True)),
    single(R.WRONG_TYPE, "attributes in a string", about_store("ALTER", attributes="size=8G"), "an object"),
    single(R.WRONG_TYPE, "measured in an array", about_store("MEASURE", measured=[1]), "an object"),
    single(R.WRONG_TYPE, "a measured string", about_store("MEASURE", measured={"messages": "1"}), "measured.messages"),
    # Values.
    *(bad(R.BAD_VALUE, "0 to 104857600", length=value) for value in (-1, 104_857_601, 2**63)),
    single(R.BAD_VALUE, "a length beyond doubles", text(length=12321).replace(b"12321", b"1e999"), "64 bits"),
    *(bad(R.BAD_VALUE, "0 to 9", priority=value) for value in (-1, 10)),
    *(bad(R.BAD_VALUE, "seq is", seq=value) for value in (-1, 2**63)),
    *(bad(R.BAD_VALUE, "1 to 1000000", count=value) for value in (0, 1_000_001)),
    bad(R.BAD_VALUE, "reason is", reason=-1),
    *(bad(R.BAD_VALUE, "1 to 48 bytes", msgid=value) for value in ("", "x" * 49, "é" * 25)),
    bad(R.BAD_VALUE, "beside a msgid", msgid="a1", count=2),
    *(bad(R.BAD_VALUE, "a number above 0", expiry=value) for value in (0, -1, 100_000_000)),
    bad(R.IMPOSSIBLE_DIRECT, "direct with uow", direct=True, uow="u1"),
    bad(R.IMPOSSIBLE_DIRECT, "direct with persistent", direct=True, persistent=True),
    single(R.BAD_VALUE, "nothing measured", about_store("MEASURE", measured={}), "at least one number"),
    single(R.BAD_VALUE, "a negative measurement", about_store("MEASURE", measured={"ents_used": -1}), "ents_used"),
    single(R.BAD_VALUE, "measured of QM99", about_store("MEASURE", measured={"smds": {"QM99": {}}}), "QM01, QM02"),
    *(
        bad(R.BAD_TIME, "RFC 3339", time=value)
        for value in (
            "yesterday",
            "",
            "2026-11-20T12:00:00",
            "2026-02-30T12:00:00Z",
            "1999-12-31T23:59:59Z",
            "2101-01-01T00:00:00Z",
            TIME // 1_000_000,  # seconds
            TIME * 1_000,  # nanoseconds
            -1,
        )
    ),
    # Names.
    *(bad(R.UNKNOWN_OP, "expected: one of PUT, GET", op=value) for value in ("PEEK", "put", "")),
    bad(R.UNKNOWN_QUEUE_MANAGER, '"QM99"', qmgr="QM99"),
    single(R.UNKNOWN_QUEUE_MANAGER, "HEARTBEAT", about_store("HEARTBEAT", qmgr="QM99", store=...), '"QM99"'),
    single(R.UNKNOWN_QUEUE_MANAGER, "ALTER", about_store("ALTER", qmgr="", attributes={"offld1_th": 60}), '""'),
    bad(R.UNKNOWN_QUEUE, "NOWHERE", queue="NOWHERE"),
    bad(R.UNKNOWN_QUEUE, "QMD1 has no queue", qmgr="QMD1"),
    single(R.UNKNOWN_STORE, "none", about_store("ALTER", store="QSG1/NONE", attributes={"offld1_th": 60}), "QSG1/NONE"),
    single(R.UNKNOWN_STORE, "another's", about_store("RESTART", qmgr="QMD1"), "does not concern QMD1"),
    *(
        single(
            R.BAD_ATTRIBUTES,
            f"{qmgr} {op} {name} {value}",
            about_store(op, qmgr=qmgr, store=store, attributes={name: value}),
            name,
        )
        for qmgr, store, op, name, value in (
            ("QM01", "QM01/PS04", "ALTER", "pages", 1),
            ("QM01", "QM01/PS04", "ALTER", "expand", "MAYBE"),
            ("QMD1", "QMD1/INVOICES", "ALTER", "max_size", "2 TB"),
            ("QMD1", "QMD1/INVOICES", "ALTER", "default_q_buffer_size", "1M"),
        )
    ),
    single(R.BAD_PLAN, "no id", about_store("PLAN", plan={"messages": 1}), "id"),
    single(R.BAD_ATTRIBUTES, "CF01", about_store("ALTER", store="CF01", attributes={"colour": 1}), "colour"),
    *(
        single(R.BAD_ATTRIBUTES, f"{op} {name} {value}", about_store(op, attributes={name: value}), name)
        for op in ("ALTER", "REBUILD")
        for name, value in (("colour", 1), ("offld1_th", 101), ("offld1_sz", "65K"), ("size", "many"), ("size", -1))
    ),
    # Content types, and invalid Arrow streams.
    *(
        single(R.UNKNOWN_CONTENT_TYPE, kind, text(), kind.lower(), kind)
        for kind in ("text/plain", "Application/JSON-seq")
    ),
    single(R.UNKNOWN_CONTENT_TYPE, "empty", text(), "expected: application/json", ""),
    single(R.UNKNOWN_CONTENT_TYPE, "of a null value", None, "expected: application/json", "text/plain"),
    single(R.BAD_ARROW, "a null value", None, "expected: one whole Arrow", ARROW),
    single(R.BAD_ARROW, "an empty value", b"", "expected: one whole Arrow", ARROW),
    single(R.BAD_ARROW, "words", b"these are words", "expected: one whole Arrow", ARROW),
    single(R.BAD_ARROW, "JSON", text(), "expected: one whole Arrow", ARROW),
    single(R.BAD_ARROW, "zeros", b"\0" * 1000, "expected: one whole Arrow", ARROW),
    # Small values that expand enormously.
    single(R.OVERSIZED, "600 million nulls", nulls(600_000_000), "expected: at most 32400 rows", ARROW),
    single(R.OVERSIZED, "a run of a billion", run_end(1_000_000_000), "1000000000 rows", ARROW),
    single(R.OVERSIZED, "lines", b"\n" * 1_000_001, "expected: at most 1000000 lines", NDJSON),
    Case(
        "1,003 bad lines",
        b"x\n" * 1_001 + b"{}\n{}",
        (
            *(Letter(R.NOT_JSON, "", b"x", index) for index in range(1_000)),
            Letter(R.MANY_REJECTED, "index 1000 to 1002: 2 missing-field, 1 not-json;", b"", 1_000),
        ),
        NDJSON,
    ),
    # Large values, of which a dead letter has the beginning.
    single(R.NOT_JSON, "huge", b"x" * HUGE),
    single(R.NOT_JSON, "huge and cut off", text(uow="u" * HUGE)[:-1], "truncated"),
    single(R.UNKNOWN_QUEUE, "huge", text(queue="NOWHERE", uow="u" * HUGE), "NOWHERE"),
    single(R.BAD_ARROW, "huge", b"x" * HUGE, "", ARROW),
]


def line_case(name: str, queue: str, *parts: bytes | Letter, end: bytes = b"\n") -> Case:
    """Return a case of NDJSON. A part is a line: a dead letter for a bad one, GOOD for a good event of the queue."""
    lines = [part.value if isinstance(part, Letter) else part for part in parts]
    letters = tuple(part for part in parts if isinstance(part, Letter))
    value = end.join(text(queue=queue) if line == b"GOOD" else bytes(line) for line in lines)
    return Case(name, value, letters, NDJSON, lines.count(b"GOOD"), queue)


LINES = [
    line_case(
        "bad lines amid good ones",
        MIXED_QUEUES[0],
        b"GOOD",
        Letter(R.NOT_JSON, "", b"what is this", 1),
        b"",
        b"GOOD",
        Letter(R.WRONG_TYPE, "length", text(length="100"), 4),
        Letter(R.UNKNOWN_QUEUE, "NOWHERE", text(queue="NOWHERE"), 5),
        b"  ",
        Letter(R.MISSING_FIELD, "time", b"{}", 7),
        b"GOOD",
        b"",
    ),
    line_case(
        "lines that end with CR LF",
        MIXED_QUEUES[1],
        b"GOOD",
        Letter(R.NOT_AN_OBJECT, "", b"[]", 1),
        b"GOOD",
        end=b"\r\n",
    ),
    line_case(
        "lines that are not UTF-8",
        MIXED_QUEUES[2],
        b"GOOD",
        Letter(R.NOT_JSON, "", b"\xff\xfe\x00", 1),
        Letter(R.NOT_JSON, "utf-8", text(qmgr="QM#1").replace(b"#", b"\xe9"), 2),
        b"GOOD",
    ),
    line_case("a huge line", MIXED_QUEUES[3], b"GOOD", Letter(R.NOT_JSON, "", b"y" * HUGE, 1), b"GOOD"),
]


def damage_case(name: str, queue: str, value: bytes, good: int, detail: str) -> Case:
    """Return a case of a damaged Arrow stream: the first rows count, and the whole value is the dead letter."""
    return Case(name, value, (Letter(R.BAD_ARROW, detail, value, good),), ARROW, good, queue)


def row_case(name: str, queue: str, rows: pa.Table, letters: dict[int, tuple[Reason, str, dict[str, Any]]]) -> Case:
    """Return a case of an Arrow stream with bad rows; `letters` has reason, detail and JSON of each, by row number."""
    expected = tuple(Letter(reason, detail, row, index) for index, (reason, detail, row) in letters.items())
    return Case(name, arrow(rows), expected, ARROW, rows.num_rows - len(expected), queue)


def arrow_cases() -> list[Case]:
    queues = MIXED_QUEUES[len(LINES) :]
    good = [event(queue=queue) for queue in queues]
    letters = [row | {"time": "2026-11-20T12:00:00.000000Z"} for row in good]  # a dead letter has timestamps as text
    eleven, three = to_table([good[0]] * 11), to_table([good[1]] * 3)
    cut = arrow(eleven, eleven, eleven)[: len(arrow(eleven, eleven)) + 40]
    changes: list[dict[str, Any]] = [{"length": -1}, {"queue": "NOWHERE"}, {"op": "PEEK"}]
    amid = pa.Table.from_pylist([row for change in changes for row in (good[2], good[2] | change)])

    def with_column(number: int, name: str, values: pa.Array) -> pa.Table:
        table = to_table([good[number]] * len(values))
        return table.set_column(table.column_names.index(name), name, values)

    return [
        damage_case("Arrow cut off in its third batch", queues[0], cut, 22, "expected: one whole Arrow IPC stream"),
        damage_case("bytes after an Arrow stream", queues[1], arrow(three) + b"more", 3, "4 bytes follow the end"),
        row_case(
            "bad rows amid good ones",
            queues[2],
            amid,
            {
                1: (R.BAD_VALUE, "length is -1", good[2] | changes[0]),
                3: (R.UNKNOWN_QUEUE, "NOWHERE", good[2] | changes[1]),
                5: (R.UNKNOWN_OP, "PEEK", good[2] | changes[2]),
            },
        ),
        row_case(
            "an Arrow column of another type with few values",
            queues[3],
            with_column(3, "priority", pa.array([None, "4", None])),
            {1: (R.WRONG_TYPE, "priority is", letters[3] | {"priority": "4"})},
        ),
        row_case(
            "an Arrow column of floating-point lengths",
            queues[4],
            with_column(4, "length", pa.array([100.0, 100.5])),
            {index: (R.WRONG_TYPE, "length is", letters[4] | {"length": 100.0 + index / 2}) for index in range(2)},
        ),
        row_case(
            "an Arrow column of times without a zone",
            queues[5],
            with_column(5, "time", pa.array([TIME], pa.timestamp("us"))),
            {0: (R.WRONG_TYPE, "without a time zone", good[5] | {"time": "2026-11-20 12:00:00.000000"})},
        ),
    ]


MIXES = [*LINES, *arrow_cases()]
NO_EVENTS = [
    Case(f"NDJSON without events: {value!r}", value, (), NDJSON) for value in (None, b"", b"\n \r\n")
]  # empty lines are skipped
CASES = [*SINGLES, *MIXES, *NO_EVENTS]


# --- the stream ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Output:
    """The output of the stream.

    Args:
        stream: the stream.
        places: (partition, offset) of the record of each case, by its name.
        letters: dead letters.
        states: state records by store.
        later_letters: number of dead letters after another good event.
        later_states: state records after another good event.
    """

    stream: Stream
    places: Mapping[str, tuple[int, int]]
    letters: list[Record]
    states: Mapping[str, Any]
    later_letters: int
    later_states: Mapping[str, Any]

    def letters_of(self, case: Case) -> list[Record]:
        """Return the dead letters of a case's record, by index."""
        place = tuple(str(number) for number in self.places[case.name])
        letters = [
            letter for letter in self.letters if (letter.headers["partition"], letter.headers["offset"]) == place
        ]
        return sorted(letters, key=lambda letter: int(letter.headers["index"]))


@pytest.fixture(scope="module")
def estate(tmp_path_factory: pytest.TempPathFactory) -> Estate:
    path = tmp_path_factory.mktemp("estate") / "estate.toml"
    path.write_text(ESTATE)
    return load_estate(path)


def create_topics(stream: Stream, **record_bytes: int) -> None:
    """Create topics with limits of the size of records, by the names of `Topics`."""
    admin = AdminClient({"bootstrap.servers": stream.servers})  # has to live until the results are there
    topics = [
        NewTopic(getattr(stream.topics, name), 1, config={"max.message.bytes": str(size)})
        for name, size in record_bytes.items()
    ]
    for created in admin.create_topics(topics).values():
        created.result()


@pytest.fixture(scope="module")
def output(spark: SparkSession, kafka: str, estate: Estate, tmp_path_factory: pytest.TempPathFactory) -> Output:
    folder = tmp_path_factory.mktemp("bad")
    stream = Stream(spark, kafka, f"test-bad-input-cases-{uuid.uuid4().hex[:8]}", estate, folder / "checkpoint")
    create_topics(stream, events=LONGEST_RECORD, dlq=DLQ_RECORD)
    key = STORE.encode()
    records: list[tuple[bytes, Any, str | None]] = []
    for number, case in enumerate(CASES):
        records += [(key, case.value, case.content_type), (key, text(seq=number, msgid=f"m{number}"), None)]
    places = stream.send(records)
    stream.run()
    letters, states = stream.letters(), stream.states()
    stream.send([(key, text(seq=len(CASES), msgid="later"), "Application/JSON; charset=utf-8")])
    stream.run()
    named = {case.name: places[2 * number] for number, case in enumerate(CASES)}
    return Output(stream, named, letters, states, len(stream.letters()), stream.states())


# --- the tests -------------------------------------------------------------------------------------------------------


def test_every_reason_has_its_case() -> None:
    """Check the reasons for events.

    `too-large` is for output records (see the last test), `bad-report` and `unreadable-spans` for other topics (see
    tests/system/test_stream_reports.py and test_spans.py), and no input causes `undecodable` (see
    tests/twin/events/test_bounds.py).
    """
    others = {Reason.TOO_LARGE, Reason.BAD_REPORT, Reason.UNREADABLE_SPANS, Reason.UNDECODABLE}
    event_reasons = set(Reason) - others
    assert {letter.reason for case in CASES for letter in case.letters} == event_reasons
    assert len({case.name for case in CASES}) == len(CASES)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_each_bad_event_is_one_dead_letter(output: Output, case: Case) -> None:
    letters = output.letters_of(case)
    assert [(letter.headers["reason"], int(letter.headers["index"])) for letter in letters] == [
        (str(letter.reason), letter.index) for letter in case.letters
    ]
    for letter, expected in zip(letters, case.letters, strict=True):
        headers = dict(letter.headers)
        assert headers.pop("topic") == output.stream.topics.events
        detail = headers.pop("detail")
        assert expected.detail in detail
        assert detail and "\n" not in detail
        for name in ("reason", "index", "partition", "offset"):  # checked above
            del headers[name]
        if isinstance(expected.value, Mapping):
            assert msgspec.json.decode(letter.value) == expected.value
            assert headers == {}
        elif len(expected.value) > DLQ_VALUE:
            assert letter.value == expected.value[:DLQ_VALUE]
            assert headers == {"original-length": str(len(expected.value))}
        else:
            assert (letter.value or b"") == expected.value
            assert headers == {}


@pytest.mark.parametrize("case", MIXES, ids=lambda case: case.name)
def test_the_good_events_of_a_bad_record_are_kept(output: Output, case: Case) -> None:
    depths = {queue.name: (queue.depth, queue.bytes) for queue in output.states[MIXED].queues}
    assert depths.get(case.queue, (0, 0)) == (case.good, 100 * case.good)


def test_nothing_else_is_a_dead_letter(output: Output) -> None:
    assert len(output.letters) == sum(len(case.letters) for case in CASES)


def test_good_records_between_bad_ones_count_and_bad_ones_do_not(output: Output) -> None:
    assert set(output.states) == {STORE, MIXED}
    state = output.states[STORE]
    assert (state.events, state.messages, state.bytes) == (len(CASES), len(CASES), 100 * len(CASES))
    for name in ("gaps", "duplicates", "unmatched_gets", "full_puts", "refused_alters", "overfull_puts"):
        assert getattr(state, name) == 0
    assert state.baseline is None
    good = sum(case.good for case in MIXES)
    assert (output.states[MIXED].events, output.states[MIXED].messages) == (good, good)


def test_afterwards_the_same_checkpoint_is_continued(output: Output) -> None:
    assert output.later_letters == len(output.letters)
    assert output.later_states[MIXED] == output.states[MIXED]
    later = output.later_states[STORE]
    assert (later.events, later.messages, later.gaps) == (len(CASES) + 1, len(CASES) + 1, 0)


@pytest.mark.nightly
def test_an_output_record_beyond_the_limit_of_its_topic_is_a_dead_letter(
    spark: SparkSession, kafka: str, topic_prefix: str, estate: Estate, tmp_path: Path
) -> None:
    """A state record is too large; a dead letter of 11 MB beside it fits its topic."""
    stream = Stream(spark, kafka, topic_prefix, estate, tmp_path / "checkpoint")
    create_topics(stream, events=LONGEST_RECORD, dlq=LONGEST_RECORD, state=8192 + 100)
    garbage = b"x" * HUGE
    stream.send([(b"?", garbage, None), (STORE.encode(), text(), None)])
    stream.run()
    assert stream.states() == {}
    garbage_letter, own = sorted(stream.letters(), key=lambda letter: letter.headers["reason"])
    assert garbage_letter.headers["reason"] == "not-json"
    assert garbage_letter.value == garbage and "original-length" not in garbage_letter.headers
    assert own.headers["reason"] == "too-large"
    assert own.headers["topic"] == stream.topics.state
    assert STORE in own.headers["detail"] and "max.message.bytes" in own.headers["detail"]
    assert msgspec.json.decode(own.value)["messages"] == 1
