"""The published schemas: sound, in agreement with the code that reads and writes, their examples true."""

from __future__ import annotations

import re
from contextlib import nullcontext
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, get_args, get_type_hints

import hypothesis.strategies as st
import jsonschema
import msgspec
import pytest
import yaml
from hypothesis import example, given, settings

from kernels import OPS
from kernels.json_scan import TIME_HIGH, TIME_LOW
from tests.support.profile import examples
from tests.twin.events.samples import ESTATE, GET, MQSC, PUT
from twin.alerts.episodes import Alert
from twin.errors import UsageError
from twin.estate import Estate, load_estate
from twin.events import ARROW_SCHEMA, CONTENT_TYPES, Decoder, EventError, Reason
from twin.events.fields import FIELDS, Event, Kind, Op
from twin.events.measured import (
    MEASURED,
    MEASURED_COUNTS,
    MEASURED_NUMBERS,
    MEASURED_SCM,
    MEASURED_SMDS,
    MESSAGES_MAX,
    Measured,
)
from twin.events.rules import Rules, parse
from twin.records import (
    STATES,
    Action,
    AlertData,
    AlertRecord,
    DataSetState,
    DeepQueue,
    FileSize,
    Filler,
    ForecastScores,
    HorizonScore,
    HostState,
    IntervalScore,
    Note,
    PageScore,
    ProbabilityBin,
    ResourceForecast,
    ScmShare,
    ScmState,
    SizePair,
    StateForecast,
    StateRecord,
    Step,
    StorageShare,
    TimeToFull,
    new_note,
    read_note,
)
from twin.stores.open import open_store

SCHEMAS = Path(__file__).resolve().parents[1] / "schemas"
NAMES = ("event", "state", "alert", "note", "dead-letter", "report")
ROUTING = {Reason.UNKNOWN_QUEUE_MANAGER, Reason.UNKNOWN_QUEUE, Reason.UNKNOWN_STORE}

formats = jsonschema.FormatChecker(())


@formats.checks("date-time", raises=ValueError)
def is_date_time(value: object) -> bool:
    """A day that there is, at a time that there is; the leap second at the end of a day in UTC only."""
    if not isinstance(value, str):
        return True
    text = re.sub(r"\.(\d{0,6})\d*", lambda match: "." + match[1].ljust(6, "0"), value.upper())
    moment = datetime.fromisoformat(text.replace(":60", ":59", 1) if text[17:19] == "60" else text)
    in_utc = moment.astimezone(UTC)
    return text[17:19] != "60" or (in_utc.hour, in_utc.minute) == (23, 59)


def schema(name: str) -> dict[str, Any]:
    loaded: dict[str, Any] = msgspec.json.decode((SCHEMAS / f"{name}.schema.json").read_bytes())
    return loaded


def validator(name: str) -> Any:
    return jsonschema.Draft202012Validator(schema(name), format_checker=formats)


EVENT = validator("event")


@pytest.fixture(scope="module")
def estate(tmp_path_factory: pytest.TempPathFactory) -> Estate:
    folder = tmp_path_factory.mktemp("estate")
    (folder / "qsg1.mqsc").write_text(MQSC)
    (folder / "estate.toml").write_text(ESTATE)
    return load_estate(folder / "estate.toml")


# --- the schemas themselves ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_a_schema_is_one_of_2020_12_and_its_examples_are_true(name: str) -> None:
    loaded = schema(name)
    assert loaded["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    jsonschema.Draft202012Validator.check_schema(loaded)
    assert loaded["examples"]
    for sample in loaded["examples"]:
        validator(name).validate(sample)


def test_the_examples_of_events_are_taken(estate: Estate) -> None:
    decoded = Decoder(estate).json([msgspec.json.encode(event) for event in schema("event")["examples"]])
    assert not decoded.rejects


def test_a_replayed_dead_letter() -> None:
    loaded = schema("dead-letter")
    replayed = jsonschema.Draft202012Validator({"$ref": "#/$defs/replayed", "$defs": loaded["$defs"]})
    for sample in loaded["$defs"]["replayed"]["examples"]:
        replayed.validate(sample)
    assert not replayed.is_valid({"reason": "not-json", "detail": "x", "index": 0})


# --- one list of fields ----------------------------------------------------------------------------------------------

JSON_TYPES = {
    Kind.STRING: "string",
    Kind.INTEGER: "integer",
    Kind.NUMBER: "number",
    Kind.BOOLEAN: "boolean",
    Kind.OBJECT: "object",
}
BOUNDS = {Kind.STRING: ("minLength", "maxLength"), Kind.NUMBER: ("exclusiveMinimum", "maximum")}


def test_the_fields_are_those_of_the_decoder() -> None:
    properties = schema("event")["properties"]
    assert list(properties) == [field.name for field in FIELDS] == ARROW_SCHEMA.names
    assert properties["op"]["enum"] == list(OPS)
    times = properties["time"]["oneOf"]
    assert (times[1]["minimum"], times[1]["maximum"]) == (TIME_LOW, TIME_HIGH - 1)
    for field in FIELDS:
        if field.name in ("time", "op"):
            continue
        needed_by_all = field.needed_by == OPS
        own = properties[field.name]
        assert own["type"] == (JSON_TYPES[field.kind] if needed_by_all else [JSON_TYPES[field.kind], "null"])
        if field.high is not None:
            low, high = BOUNDS.get(field.kind, ("minimum", "maximum"))
            assert (own[low], own[high]) == (field.low, field.high)
        else:
            assert not {"minimum", "maximum", "minLength", "maxLength"} & set(own)


def test_the_type_of_an_event_has_the_fields_of_the_decoder() -> None:
    assert get_type_hints(Event).keys() == {field.name for field in FIELDS}
    assert Event.__required_keys__ == {field.name for field in FIELDS if field.needed_by == OPS}
    assert get_args(Op) == OPS
    types = {Kind.TIME: int, Kind.STRING: str, Kind.INTEGER: int, Kind.NUMBER: float, Kind.BOOLEAN: bool}
    hints = get_type_hints(Event)
    for field in FIELDS:
        if field.kind is not Kind.OBJECT and field.name != "op":
            assert hints[field.name] is types[field.kind]
    assert hints["measured"] is Measured


def test_what_an_operation_needs_is_what_the_decoder_wants() -> None:
    loaded = schema("event")
    assert loaded["required"] == [field.name for field in FIELDS if field.needed_by == OPS]
    needed = {
        (op, name)
        for rule in loaded["allOf"]
        if "op" in rule["if"]["properties"] and "enum" in rule["if"]["properties"]["op"]
        for op in rule["if"]["properties"]["op"]["enum"]
        for name in rule["then"]["required"]
    }
    assert needed == {(op, field.name) for field in FIELDS if field.needed_by != OPS for op in field.needed_by}


def test_what_is_measured_is_what_the_decoder_checks() -> None:
    numbers = schema("event")["$defs"]["numbers"]
    assert set(numbers["properties"]) == set(numbers["not"]["properties"]) == set(MEASURED)
    for name, high in MEASURED_COUNTS.items():
        kind = "messages" if high == MESSAGES_MAX else "count"
        assert numbers["properties"][name] == {"$ref": f"#/$defs/{kind}"}
    for inner in (numbers["properties"]["smds"]["additionalProperties"], numbers["properties"]["scm"]):
        assert inner["properties"]["messages"] == {"$ref": "#/$defs/messages"}
    for name in MEASURED_NUMBERS:
        assert numbers["properties"][name] == {"$ref": "#/$defs/number"}
    assert list(numbers["properties"]["smds"]["additionalProperties"]["properties"]) == list(MEASURED_SMDS)
    assert list(numbers["properties"]["scm"]["properties"]) == list(MEASURED_SCM)


def test_what_can_be_measured_are_fields_of_state_records() -> None:
    state = schema("state")
    fields = dict(state["properties"])
    for name in state["$defs"].keys() - {"late_reports"}:  # a count of ours, which nobody measures
        fields |= state["$defs"][name]["properties"]
    worked_out = ("messages_estimated", "drift_pct", "fidelity", "load")  # by the twin
    for name in (*worked_out, "storage_total", "storage_promised", "storage_measured"):
        del fields[name]
    integers = {name for name, own in fields.items() if own.get("type") in ("integer", ["integer", "null"])}
    numbers = {name for name, own in fields.items() if own.get("type") in ("number", ["number", "null"])}
    assert MEASURED_COUNTS.keys() == integers
    assert MEASURED_NUMBERS.keys() == numbers
    structure = state["$defs"]["structure"]["properties"]
    assert set(MEASURED_SMDS) == set(structure["smds"]["additionalProperties"]["required"]) - {"status"}
    assert set(MEASURED_SCM) == set(structure["scm"]["required"]) - {"fault_wait_s"}


def test_the_reasons_are_those_of_the_code() -> None:
    reasons = schema("dead-letter")["$defs"]["reason"]["oneOf"]
    assert [(reason["const"], reason["description"]) for reason in reasons] == [(r.value, r.sentence) for r in Reason]


# --- what the code makes ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("severity", ["info", "warning"])
@pytest.mark.parametrize("change", ["opened", "updated", "cleared"])
def test_an_alert_of_the_code_is_one_of_the_schema(change: str, severity: str) -> None:
    alert = Alert(
        change=change,
        number=0,
        alert_id="a",
        severity=severity,
        store="QSG1/APP1",
        resource="smds/QM01",
        condition="full",
        time=1_795_176_000_000_000,
        usage_pct=99.5,
        time_to_full_s=None,
        full_probability=None,
        fillers=(Filler(queue="ORDERS", share=0.5),),
        cause="The data set is full.",
        runbook=(Action(id="volumes", summary="Add volumes", steps=(Step("Look", "DISPLAY USAGE"),)),),
    )
    record = msgspec.json.decode(alert.record())
    validator("alert").validate(record)
    fields = set(schema("alert")["$defs"]["data"]["properties"])
    assert set(record["data"]) == fields


def test_the_fields_of_an_alert_are_those_of_its_record() -> None:
    data = schema("alert")["$defs"]["data"]
    assert set(AlertData.__struct_fields__) == set(data["properties"]) == set(data["required"])
    assert set(AlertRecord.__struct_fields__) - {"value"} <= set(schema("alert")["required"])
    assert set(Filler.__struct_fields__) == set(data["properties"]["fillers"]["items"]["properties"])
    nullable = {field.name for field in msgspec.inspect.type_info(AlertData).fields if _takes_null(field.type)}
    assert nullable == {name for name, own in data["properties"].items() if "null" in own.get("type", ())}


NOTE_TIMES = ["2026-11-20T01:46:00Z", "2026-11-20T01:46:00.123456Z", "2028-02-29T23:59:59Z", "2026-11-20", "", None]
NOTE_TIMES += ["2026-13-45T99:99:99Z", "2026-02-29T01:46:00Z", "2026-11-31T01:46:00Z", "2026-11-20T24:00:00Z"]
NOTE_TIMES += ["2026-11-20T01:46:60Z", "\u0662\u0660\u0662\u0666-11-20T01:46:00Z", "0000-01-01T00:00:00Z"]
NOTE_TIMES += ["1999-12-31T23:59:59Z", "2101-01-01T00:00:00Z", "2026-11-20T01:46:00Z\n", "2026-11-20T01:46:00+01:00"]

texts = st.none() | st.text("ab\n\u00e9", max_size=3) | st.sampled_from(["x" * 500, "x" * 501, "y" * 64, "y" * 65])


@given(
    note=st.fixed_dictionaries(
        {
            "alert_id": texts,
            "kind": st.sampled_from(["acknowledged", "acted", "comment", "other"]),
            "action": texts,
            "text": texts,
            "who": texts,
            "time": st.sampled_from(NOTE_TIMES),
        }
    )
)
@settings(max_examples=examples(1000))
def test_the_schema_of_a_note_and_its_reader_agree(note: dict[str, Any]) -> None:
    try:
        read_note(msgspec.json.encode(note))
    except msgspec.ValidationError:
        is_taken = False
    else:
        is_taken = True
    assert validator("note").is_valid(note) == is_taken


@pytest.mark.parametrize("time", NOTE_TIMES)
def test_a_note_has_a_time_that_there_is(time: str | None) -> None:
    note = {"alert_id": "a", "kind": "comment", "action": None, "text": "odd", "who": "bob", "time": time}
    is_valid = validator("note").is_valid(note)
    assert is_valid == (time in NOTE_TIMES[:3])
    with nullcontext() if is_valid else pytest.raises(msgspec.ValidationError):
        read_note(msgspec.json.encode(note))


def test_a_note_of_the_code_is_one_of_the_schema() -> None:
    time = "2026-11-20T01:46:00.000000Z"
    acted = new_note("a", "acted", " ann \n b ", time, action="scm", text=" two\nlines ")
    assert (acted.who, acted.text) == ("ann b", "two lines")
    for note in (acted, new_note("a", "comment", "b", time, text="c"), new_note("a", "acknowledged", "b", time)):
        encoded = msgspec.json.encode(note)
        validator("note").validate(msgspec.json.decode(encoded))
        assert read_note(encoded) == note
    assert_fields(Note, schema("note"))


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"who": " "}, "who = '' has 0 characters; expected: 1 to 64"),
        ({"text": "x" * 501}, f"text = '{'x' * 40}' has 501 characters; expected: 1 to 500"),
        ({"action": None}, "expected: the id of an action, of acted only"),
        ({"kind": "comment", "action": None}, "expected: a comment"),
        ({"kind": "shouted"}, "shouted"),
    ],
)
def test_a_note_that_is_none_says_what_would_be_right(fields: dict[str, Any], expected: str) -> None:
    own = {"alert_id": "a", "kind": "acted", "who": "ann", "time": "2026-11-20T01:46:00Z", "action": "scm", **fields}
    with pytest.raises(UsageError) as error:
        new_note(**own)
    assert expected in str(error.value)


def test_the_fields_of_a_state_record_are_those_of_its_struct() -> None:
    """Fields and which of them may be null; what a struct has by default is what records of version 0.1.0 lack."""
    state = schema("state")
    assert list(STATES) == state["properties"]["kind"]["enum"]
    assert_fields(StateRecord, state)
    for kind, struct in STATES.items():
        own = state["$defs"][kind]
        common = {name: field for name, field in state["properties"].items() if name not in own["properties"]}
        assert_fields(struct, {"properties": common | own["properties"], "required": [*common, *own["required"]]})
    structure = state["$defs"]["structure"]["properties"]
    forecast = state["properties"]["forecast"]
    outlook = forecast["properties"]["resources"]["items"]
    scores = state["properties"]["forecast_scores"]
    horizon = scores["properties"]["horizons"]["items"]
    nested = {
        DeepQueue: state["properties"]["queues"]["items"],
        SizePair: state["properties"]["sizes_measured"]["additionalProperties"]["additionalProperties"],
        StateForecast: forecast,
        ResourceForecast: outlook,
        TimeToFull: outlook["properties"]["time_to_full_s"],
        ForecastScores: scores,
        HorizonScore: horizon,
        ProbabilityBin: horizon["properties"]["bins"]["items"],
        IntervalScore: scores["properties"]["intervals"],
        PageScore: scores["properties"]["pages"],
        DataSetState: structure["smds"]["additionalProperties"],
        ScmState: structure["scm"],
        ScmShare: state["$defs"]["coupling_facility"]["properties"]["structures"]["additionalProperties"],
        StorageShare: state["$defs"]["coupling_facility"]["properties"]["storage"]["additionalProperties"],
        HostState: state["$defs"]["uniform_cluster"]["properties"]["hosts"]["additionalProperties"],
        FileSize: state["$defs"]["queue_manager"]["properties"]["files"]["items"],
    }
    for struct, own in nested.items():
        assert_fields(struct, own)


def assert_fields(struct: type[msgspec.Struct], described: dict[str, Any]) -> None:
    """Assert that a struct has the fields of an object of a schema, all required, and null where the schema has it."""
    fields = {field.name: field for field in msgspec.inspect.type_info(struct).fields}
    assert fields.keys() == described["properties"].keys() == set(described["required"]), struct
    assert {name for name, field in fields.items() if _takes_null(field.type)} == {
        name
        for name, own in described["properties"].items()
        if "null" in own.get("type", ()) or None in own.get("enum", ())
    }, struct


def _takes_null(own: msgspec.inspect.Type) -> bool:
    return isinstance(own, msgspec.inspect.UnionType) and own.includes_none


@pytest.mark.parametrize(
    ("qmgr", "queue", "store", "measured"),
    [
        ("QM01", "ORDERS", "QSG1/APP1", {"messages": 9}),
        ("QM01", "LOCAL.REPLIES", "QM01/PS04", {"pages_used": 90, "buffer_pool_pct": 86.5}),
        ("QMD1", "INVOICES", "QMD1/INVOICES", {"blocks_persistent": 900, "file_bytes": 1_000_000}),
    ],
)
def test_a_state_of_the_code_is_one_of_the_schema(
    estate: Estate, qmgr: str, queue: str, store: str, measured: dict[str, Any]
) -> None:
    twin = open_store(estate, store)
    states = [msgspec.json.decode(msgspec.json.encode(twin.state()))]
    put = PUT | {"qmgr": qmgr, "queue": queue}
    measure = {"time": PUT["time"], "qmgr": qmgr, "op": "MEASURE", "store": store, "measured": measured}
    decoded = Decoder(estate).json([msgspec.json.encode(event) for event in (put, put | {"length": 70_000}, measure)])
    for block in decoded.blocks(estate):
        twin.apply(block)
    states.append(msgspec.json.decode(msgspec.json.encode(twin.state())))
    fields = schema("state")
    for state in states:
        validator("state").validate(state)
        assert set(state) == set(fields["properties"]) | set(fields["$defs"][twin.kind]["properties"])
    assert states[1]["messages"]


# --- events: the schema and the decoder agree ------------------------------------------------------------------------

scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-2, 12),
    st.sampled_from([2**31 - 1, 2**31, 2**63 - 1, 2**63, 104_857_600, 104_857_601, 1_000_000, 1_000_001]),
    st.sampled_from([TIME_LOW - 1, TIME_LOW, TIME_HIGH - 1, TIME_HIGH, 0.5, -0.5, 1e300]),
    st.text("abc\u00e9", max_size=3),
    st.sampled_from(["a" * 48, "a" * 49, "PUT", "PEEK", "MEASURE", "ALTER", "QSG1/APP1", "2026-11-20T12:00:00Z"]),
    st.just([]),
    st.just({}),
)
hours = st.sampled_from(["00", "12", "23", "24", "1", "23"])
date_times = st.builds(
    "{}-{}-{}{}{}:{}:{}{}{}".format,
    st.sampled_from(["2026", "2100", "1999", "2101", "226", "2000"]),
    st.sampled_from(["01", "02", "11", "12", "13", "00"]),
    st.sampled_from(["01", "15", "28", "29", "30", "31", "32", "00"]),
    st.sampled_from(["T", "T", "t", " ", ""]),
    hours,
    st.sampled_from(["00", "59", "60", "30"]),
    st.sampled_from(["00", "59", "60", "61"]),
    st.sampled_from(["", ".1", ".123456789", "."]),
    st.sampled_from(["Z", "z", "+00:00", "-23:59", "+24:00", "", "+0100"]),
)
counts = st.one_of(st.integers(-1, 5), st.none(), st.sampled_from([0.5, "5", True, 2**31 - 1, 2**31, 2**53, 2**63]))
measurements = st.one_of(
    st.dictionaries(
        st.sampled_from([*MEASURED[:3], "ents_used", "usage_pct", "drift_pct", "kind"]), counts, max_size=3
    ),
    st.builds(
        lambda inner: {"smds": {"QM01": inner}},
        st.one_of(
            st.none(), st.dictionaries(st.sampled_from(["messages", "blocks_used", "status"]), counts, max_size=2)
        ),
    ),
    st.builds(
        lambda inner: {"scm": inner, "smds": None}, st.one_of(st.none(), st.dictionaries(st.just("used"), counts))
    ),
)
STORE = {"time": PUT["time"], "qmgr": "QM01", "store": "QSG1/APP1"}
BASES = [
    *(PUT, GET, GET | {"op": "COMMIT", "uow": "u"}, {**STORE, "op": "HEARTBEAT"}),
    *({**STORE, "op": "ALTER", "attributes": {}}, {**STORE, "op": "REBUILD"}),
    {**STORE, "op": "MEASURE", "measured": {"messages": 1}},
]


@st.composite
def mutated(draw: st.DrawFn) -> dict[str, Any]:
    event: dict[str, Any] = dict(draw(st.sampled_from(BASES)))
    for name in draw(st.lists(st.sampled_from([field.name for field in FIELDS] + ["other"]), max_size=3)):
        if name == "time" and draw(st.booleans()):
            event[name] = draw(date_times)
        elif name == "measured" and draw(st.booleans()):
            event[name] = draw(measurements)
        else:
            event[name] = draw(scalars)
    if draw(st.integers(0, 3)) == 0:
        event.pop(draw(st.sampled_from(sorted(event))))
    return event


def taken_by_the_decoder(rules: Rules, event: dict[str, Any]) -> bool:
    """Return True if the decoder accepts an event, apart from checks against the estate."""
    try:
        rules.apply(parse(msgspec.json.encode(event)))
    except EventError as error:
        if error.reason == Reason.IMPOSSIBLE_DIRECT:
            return event.get("uow") is None  # else by the platform of the queue manager, which the estate has
        known = event | {name: STORE[name] for name in ("qmgr", "store") if isinstance(event.get(name), str)}
        if error.reason in ROUTING and known != event:
            return taken_by_the_decoder(rules, known)  # what else is wrong with it
        return error.reason in ROUTING | {Reason.BAD_ATTRIBUTES}
    return True


def at_the_edge(event: dict[str, Any]) -> bool:
    """Return True near the first and last year, where JSON Schema cannot apply the offset."""
    time = event.get("time")
    return isinstance(time, str) and time[:4] in ("1999", "2000", "2100", "2101")


@given(mutated().filter(lambda event: not at_the_edge(event)))
@settings(max_examples=examples(2000))
@example({**STORE, "op": "MEASURE", "measured": {"messages": None}})
@example({**STORE, "op": "MEASURE", "qmgr": "", "measured": {}})
@example({**STORE, "op": "MEASURE", "measured": {"smds": {"QM01": None}}})
@example({**STORE, "op": "PUT", "queue": "ORDERS", "length": 1, "measured": {"messages": "any"}})
@example({**STORE, "op": "HEARTBEAT", "measured": {"silent_s": 1}})
@example({**STORE, "op": "HEARTBEAT", "measured": {"silent_s": None}})
@example({**STORE, "op": "HEARTBEAT", "measured": {"silent_s": 0}})
@example({**STORE, "op": "HEARTBEAT", "measured": {"silent_s": "5"}})
@example({**STORE, "op": "HEARTBEAT", "measured": {"silent_s": 1_000_000_001}})
@example({**STORE, "op": "HEARTBEAT", "store": None, "measured": {"silent_s": 5}})
@example({**STORE, "op": "HEARTBEAT", "measured": {"other": 5}})
@example({**PUT, "uow": None, "direct": True})
@example({**PUT, "persistent": False, "direct": True})
@example({**GET, "op": "PREPARE", "uow": None})
@example({**PUT, "expiry": 0})
@example({**GET, "msgid": "a", "count": 2})
@example({**GET, "msgid": None, "count": 2})
def test_the_schema_and_the_decoder_agree(estate: Estate, event: dict[str, Any]) -> None:
    assert EVENT.is_valid(event) == taken_by_the_decoder(Rules(estate), event)


# --- AsyncAPI --------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load((SCHEMAS / "asyncapi.yaml").read_text())
    return loaded


def resolved(document: dict[str, Any], node: Any) -> Any:
    """A node with its reference followed, within the document or to a file beside it."""
    if not (isinstance(node, dict) and "$ref" in node):
        return node
    assert set(node) == {"$ref"}
    target = node["$ref"]
    if target.startswith("./"):
        return msgspec.json.decode((SCHEMAS / target[2:]).read_bytes())
    node: Any = document
    for part in target.removeprefix("#/").split("/"):
        node = node[part]
    return resolved(document, node)


def references(node: Any) -> list[dict[str, str]]:
    if isinstance(node, dict):
        if "$ref" in node:
            return [node]
        return [ref for inner in node.values() for ref in references(inner)]
    return [ref for inner in node for ref in references(inner)] if isinstance(node, list) else []


def test_every_reference_leads_somewhere(document: dict[str, Any]) -> None:
    targets = references(document)
    assert len(targets) > 20
    for reference in targets:
        assert resolved(document, reference)


ALLOWED = {
    "document": {"asyncapi", "id", "info", "servers", "defaultContentType", "channels", "operations", "components"},
    "info": {"title", "version", "description", "termsOfService", "contact", "license", "tags", "externalDocs"},
    "channel": {
        *("address", "messages", "title", "summary", "description", "servers", "parameters"),
        *("tags", "externalDocs", "bindings"),
    },
    "operation": {
        *("action", "channel", "title", "summary", "description", "security", "tags", "externalDocs"),
        *("bindings", "traits", "messages", "reply"),
    },
    "message": {
        *("headers", "payload", "correlationId", "contentType", "name", "title", "summary", "description"),
        *("tags", "externalDocs", "bindings", "examples", "traits"),
    },
    "example": {"headers", "payload", "name", "summary"},
}


def test_the_document_has_the_shape_of_asyncapi_3(document: dict[str, Any]) -> None:
    """Fixed fields of the AsyncAPI 3.0.0 specification, and what of them is required."""
    assert document["asyncapi"] == "3.0.0"
    assert set(document) <= ALLOWED["document"]
    assert {"title", "version"} <= set(document["info"]) <= ALLOWED["info"]
    for channel in document["channels"].values():
        assert set(channel) <= ALLOWED["channel"]
        assert channel["bindings"]["kafka"]["topic"] == channel["address"]
    for operation in document["operations"].values():
        assert {"action", "channel"} <= set(operation) <= ALLOWED["operation"]
        assert operation["action"] in ("send", "receive")
        prefix = operation["channel"]["$ref"] + "/messages/"
        own = {reference["$ref"] for reference in operation["messages"]}
        assert own == {prefix + name for name in resolved(document, operation["channel"])["messages"]}
    for message in document["components"]["messages"].values():
        assert set(message) <= ALLOWED["message"]
        for part in ("headers", "payload"):
            if "schemaFormat" in message.get(part, {}):
                assert set(message[part]) == {"schemaFormat", "schema"}
        for sample in message.get("examples", []):
            assert set(sample) <= ALLOWED["example"]


def test_every_topic_is_described_once(document: dict[str, Any]) -> None:
    addresses = [channel["address"] for channel in document["channels"].values()]
    names = ("alerts", "dlq", "events", "notes", "reports", "state")
    assert sorted(addresses) == [f"mqtwin.{name}" for name in names]
    used = [
        resolved(document, message)["name"] for c in document["channels"].values() for message in c["messages"].values()
    ]
    assert sorted(used) == sorted(document["components"]["messages"])


def test_the_content_types_are_those_of_the_decoder(document: dict[str, Any]) -> None:
    messages = document["channels"]["events"]["messages"].values()
    assert [resolved(document, message)["contentType"] for message in messages] == list(CONTENT_TYPES)


def test_the_arrow_columns_are_those_of_the_code(document: dict[str, Any]) -> None:
    columns = document["components"]["messages"]["eventColumns"]["payload"]["x-arrow-columns"]
    assert list(columns.items()) == [(field.name, str(field.type)) for field in ARROW_SCHEMA]


def test_the_examples_of_messages_are_true(document: dict[str, Any], estate: Estate) -> None:
    decoder = Decoder(estate)
    for name, message in document["components"]["messages"].items():
        for sample in message.get("examples", []):
            for part in ("headers", "payload"):
                described = message.get(part)
                if described is None or part not in sample:
                    continue
                own = resolved(document, described.get("schema", described))
                jsonschema.Draft202012Validator(own, format_checker=formats).validate(sample[part])
            if name == "event":
                assert not decoder.json([msgspec.json.encode(sample["payload"])]).rejects
            if name == "eventLines":
                assert len(decoder.ndjson([sample["payload"].encode()])) == 2
            if name == "deadLetter":
                (reject,) = decoder.json([sample["payload"].encode()]).rejects
                assert (reject.reason, reject.detail) == (sample["headers"]["reason"], sample["headers"]["detail"])
