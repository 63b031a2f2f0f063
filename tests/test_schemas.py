"""The published schemas: sound, in agreement with the code that reads and writes, their examples true."""

from __future__ import annotations

import re
from contextlib import nullcontext
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import jsonschema
import msgspec
import pytest
import yaml
from hypothesis import example, given, settings

from docs.make_schemas import outputs
from kernels.json_scan import TIME_HIGH, TIME_LOW
from tests.support.profile import examples
from tests.twin.events.samples import ESTATE, GET, MQSC, PUT
from twin.alerts.episodes import Alert
from twin.base.errors import UsageError
from twin.estate import Estate, load_estate
from twin.events import Decoder, EventError, Reason
from twin.events.fields import FIELDS, MEASURED
from twin.events.rules import Rules, parse
from twin.records import (
    Action,
    Filler,
    Step,
    new_note,
    read_note,
    read_state_record,
)
from twin.stores.open import open_store

SCHEMAS = Path(__file__).resolve().parents[1] / "schemas"
NAMES = ("event", "state", "alert", "note", "act", "dead-letter", "report")
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


@pytest.mark.parametrize(
    ("path", "text"), [pytest.param(*own, id="/".join(own[0].parts[-2:])) for own in outputs().items()]
)
def test_what_is_made_from_the_types_of_records_is_fresh(path: Path, text: str) -> None:
    """`make schemas` writes it."""
    assert path.read_text(encoding="utf-8") == text


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
        site="prod",
    )
    validator("alert").validate(msgspec.json.decode(msgspec.structs.replace(alert, site=msgspec.UNSET).record()))
    record = msgspec.json.decode(alert.record())
    validator("alert").validate(record)
    fields = set(schema("alert")["$defs"]["AlertData"]["properties"])
    assert set(record["data"]) == fields


NOTE_TIMES = ["2026-11-20T01:46:00Z", "2026-11-20T01:46:00.123456Z", "2028-02-29T23:59:59Z", "2026-11-20", "", None]
NOTE_TIMES += ["2026-13-45T99:99:99Z", "2026-02-29T01:46:00Z", "2026-11-31T01:46:00Z", "2026-11-20T24:00:00Z"]
NOTE_TIMES += ["2026-11-20T01:46:60Z", "\u0662\u0660\u0662\u0666-11-20T01:46:00Z", "0000-01-01T00:00:00Z"]
NOTE_TIMES += ["1999-12-31T23:59:59Z", "2101-01-01T00:00:00Z", "2026-11-20T01:46:00Z\n", "2026-11-20T01:46:00+01:00"]

texts = st.none() | st.text("ab\n\u00e9", max_size=3) | st.sampled_from(["x" * 500, "x" * 501, "y" * 64, "y" * 65])


@given(
    note=st.fixed_dictionaries(
        {
            "alert_id": texts,
            "kind": st.sampled_from(["acknowledged", "acted", "comment", "useless", "none", "other"]),
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
    times = {"from": "2026-11-20T13:00:00Z", "until": "2026-11-20T14:00:00Z"}
    plan = {
        "time": PUT["time"],
        "qmgr": qmgr,
        "op": "PLAN",
        "store": store,
        "plan": {"id": "A", "messages": 1, **times},
    }
    events = (put, put | {"length": 70_000}, measure, plan)
    decoded = Decoder(estate).json([msgspec.json.encode(event) for event in events])
    for block in decoded.blocks(estate):
        twin.apply(block)
    states.append(msgspec.json.decode(msgspec.json.encode(twin.state())))
    fields = schema("state")
    for state in states:
        validator("state").validate(state)
        assert set(state) | {"site", "plans", "long_forecast", "words"} == set(fields["properties"]) | set(
            fields["$defs"][twin.kind]["properties"]
        )
    assert states[1]["messages"] and states[1]["plans"] and "plans" not in states[0]


@pytest.mark.parametrize(
    "change",
    [
        {"messages": -1},
        {"fidelity": 1.5},
        {"offload_rule": 4},
        {"queues": [{"name": "A", "depth": 1, "bytes": 1}] * 11},
    ],
    ids=lambda change: next(iter(change)),
)
def test_the_schema_of_a_state_and_its_reader_have_the_same_bounds(change: dict[str, Any]) -> None:
    state = schema("state")["examples"][0]
    assert read_state_record(msgspec.json.encode(state)).kind == "structure"
    assert not validator("state").is_valid(state | change)
    with pytest.raises(msgspec.ValidationError):
        read_state_record(msgspec.json.encode(state | change))


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
    st.builds(
        lambda name, inner, asked: {"queues": [{"name": name, **inner}], "asked": asked},
        st.sampled_from(["ORDERS", "", "A" * 49, None]),
        st.dictionaries(st.sampled_from(["getters", "depth", "oldest_s", "bytes"]), counts, max_size=2),
        st.sampled_from([None, [], ["QM01"], [""], "QM01", [1], ["QM01"] * 33]),
    ),
)
STORE = {"time": PUT["time"], "qmgr": "QM01", "store": "QSG1/APP1"}
BASES = [
    *(PUT, GET, GET | {"op": "COMMIT", "uow": "u"}, {**STORE, "op": "HEARTBEAT"}),
    *({**STORE, "op": "ALTER", "attributes": {}}, {**STORE, "op": "REBUILD"}),
    {**STORE, "op": "MEASURE", "measured": {"messages": 1}},
    {**STORE, "op": "PLAN", "plan": {"id": "A", "cancelled": True}},
    {**STORE, "op": "NOTE", "attributes": {"opened": PUT["time"], "word": "useful"}},
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
        return error.reason in ROUTING | {Reason.BAD_ATTRIBUTES, Reason.BAD_PLAN}
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
    names = ("acts", "alerts", "dlq", "events", "notes", "reports", "state")
    assert sorted(addresses) == [f"mqtwin.{name}" for name in names]
    used = [
        resolved(document, message)["name"] for c in document["channels"].values() for message in c["messages"].values()
    ]
    assert sorted(used) == sorted(document["components"]["messages"])


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
