"""Write everything that is made from the types of records: schemas, tables of the pages, the types of a MEASURE.

What a field means stands below it in its class, as a string; bounds and formats are part of its type. The texts may
have links, as in pages. Pages and modules have the generated parts between two markers; tests/test_schemas.py compares
them with what is written here.
"""

from __future__ import annotations

import ast
import dataclasses
import inspect
import json
import re
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from itertools import chain, pairwise
from pathlib import Path
from typing import Any, get_args

import msgspec
import yaml

from deploy.metrics.catalogue import CATALOGUE, RESOURCE, STORE
from docs.make_asyncapi import asyncapi
from kernels.json_scan import TIME_HIGH, TIME_LOW
from streams.query import report_records
from streams.query.report_records import ReadMark, ReportFields, ReportRecord
from twin.base.units import format_size
from twin.estate.attributes import FORECAST, SECTIONS
from twin.estate.load import TOML_CF_LEVEL
from twin.estate.model import (
    MAX_PAGES,
    CouplingFacility,
    ForecastSettings,
    PageSet,
    QueueFile,
    QueueManager,
    Smds,
    Structure,
    UniformCluster,
)
from twin.events import Reason
from twin.events.fields import (
    FIELDS,
    MAX_ASKED,
    MAX_NAME,
    MAX_QUEUES,
    MEASURED,
    MEASURED_COUNTS,
    MEASURED_NUMBERS,
    MEASURED_QUEUE,
    MEASURED_SCM,
    MEASURED_SMDS,
    OPS,
    QUEUE_TIMES,
    SILENT,
    Event,
    Field,
    Kind,
)
from twin.records import (
    STATES,
    ActRecord,
    AlertRecord,
    DeepQueue,
    LetterHeaders,
    Note,
    ReplayedLetter,
    StateRecord,
    acts,
    alerts,
    states,
)
from twin.stores import reports
from twin.stores.reports import LogValues, QueueFileValues, StructureValues

ROOT = Path(__file__).parents[1]
PAGES, SCHEMAS = ROOT / "docs", ROOT / "schemas"
KUBERNETES = ROOT / "deploy" / "kubernetes"
_RULES = {"monitoring": "mqtwin-job", "stores": "mqtwin-stores"}  # component -> file of rules
Schema = dict[str, Any]

_HOMES = (acts, alerts, states, reports, report_records)  # modules of the structs of records
_OPTIONAL = {  # fields that records of early versions lack, or that stand only where known
    "IncidentRole": ("recovered",),
    "AlertData": ("site",),
    "StateRecord": ("site", "plans", "long_forecast", "words"),
    "PageScore": ("saved",),
    "DeepQueue": tuple(field.name for field in msgspec.structs.fields(DeepQueue) if field.default is msgspec.UNSET),
}
_LINK = re.compile(r"\[([^]]+)\]\([^)]+\)")
_ALL = "measured"  # field of an event


def outputs() -> dict[Path, str]:
    """Return the files that have generated parts, with their whole contents."""
    files = {SCHEMAS / f"{name}.schema.json": _as_json(make()) for name, make in _SCHEMAS.items()}
    lines = "".join(f"{json.dumps(event)}\n" for event in _examples_of("events.md", "events")[:2])
    files[SCHEMAS / "asyncapi.yaml"] = yaml.safe_dump(asyncapi(lines), sort_keys=False, width=120, allow_unicode=True)
    tables = _tables()
    for page in sorted({page for page, _ in tables}):
        own = {name: text for (of_page, name), text in tables.items() if of_page == page}
        files[PAGES / page] = _with_parts(PAGES / page, "<!-- {} -->", own)
    files |= {KUBERNETES / folder / "rules.yaml": _prometheus_rule(name) for folder, name in _RULES.items()}
    module = ROOT / "twin" / "events" / "fields.py"
    files[module] = _with_parts(module, "# --- {} ---", {"types": _measured_types()})
    return files


def _prometheus_rule(name: str) -> str:
    """Return the rules of a file of Prometheus as the Prometheus operator takes them."""
    rules = (ROOT / "deploy" / "prometheus" / f"{name}.rules.yml").read_text(encoding="utf-8")
    return (
        f"# The rules of deploy/prometheus/{name}.rules.yml for the Prometheus operator, written by make schemas.\n"
        "apiVersion: monitoring.coreos.com/v1\nkind: PrometheusRule\n"
        f"metadata:\n  name: {name}\n  labels: {{app.kubernetes.io/name: mqtwin}}\nspec:\n"
        f"{textwrap.indent(rules[rules.index('groups:') :], '  ')}"
    )


def _with_parts(path: Path, marker: str, parts: Mapping[str, str]) -> str:
    """Return the text of a file with its generated parts, each between a line with its name and one that ends it."""
    text = path.read_text(encoding="utf-8")
    for name, part in parts.items():
        first, last = marker.format(f"make schemas: {name}"), marker.format("end")
        before, head, rest = text.partition(f"{first}\n")
        _, ended, after = rest.partition(last)
        assert ended, f"{path.name} lacks {first}"
        text = f"{before}{head}\n{part}\n\n{ended}{after}"
    return text


def _as_json(schema: Schema) -> str:
    text = json.dumps(schema, indent=2, ensure_ascii=False)
    short = re.compile(r"\[\n\s+([^][{}]*)\n\s+\]")  # lists of words and numbers, on one line
    return short.sub(lambda match: "[" + re.sub(",\n *", ", ", match[1]) + "]", text) + "\n"


# --- types -----------------------------------------------------------------------------------------------------------


def texts_of(record: type) -> dict[str, str]:
    """Return the texts below the fields of a class and of the classes that it extends, by field."""
    texts = {}
    for own in reversed(record.__mro__):
        if own.__module__.startswith(("twin.", "streams.")):
            [definition] = ast.parse(textwrap.dedent(inspect.getsource(own))).body
            assert isinstance(definition, ast.ClassDef)
            for field, below in pairwise(definition.body):
                match field, below:
                    case ast.AnnAssign(target=ast.Name(name)), ast.Expr(ast.Constant(str(text))):
                        texts[name] = " ".join(text.split())
    return texts


def _defs(*records: type[msgspec.Struct]) -> dict[str, Schema]:
    """Return the schemas of records, and of the records in them, by name; with links in their texts."""
    _, defs = msgspec.json.schema_components(
        records, schema_hook=lambda _: {"description": "Any value."}, ref_template="#/$defs/{name}"
    )
    for name, schema in defs.items():
        record = next(getattr(home, name) for home in _HOMES if hasattr(home, name))
        texts = texts_of(record)
        schema["description"] = " ".join(inspect.getdoc(record).split("\n\nAttributes:")[0].split())
        del schema["title"]
        for field in msgspec.structs.fields(record):
            if field.name == "value" and record is AlertRecord:
                del schema["properties"]["value"]
                continue
            own = {"description": texts[field.name], **_compact(schema["properties"][field.encode_name])}
            if own.pop("default", "") is None and record.__struct_config__.omit_defaults:
                own["type"] = own["type"][0]  # absent instead of null
            schema["properties"][field.encode_name] = own
        if not record.__struct_config__.omit_defaults:
            schema["required"] = [own for own in schema["properties"] if own not in _OPTIONAL.get(name, ())]
    return defs


def _compact(schema: Schema) -> Schema:
    """Return a schema with null among its types instead of beside them, where that is the same."""
    match schema:
        case {"anyOf": [{"type": str(kind), **other}, {"type": "null"}], **rest}:
            return {**rest, "type": [kind, "null"], **other}
        case {"anyOf": [{"enum": words}, {"type": "null"}], **rest}:
            return {**rest, "enum": [*words, None]}
    return schema


def _plain(node: Any) -> Any:  # noqa: ANN401 -- JSON
    """Return a schema whose texts have no links."""
    if isinstance(node, dict):
        return {
            key: _LINK.sub(r"\1", value) if key == "description" and isinstance(value, str) else _plain(value)
            for key, value in node.items()
        }
    return [_plain(value) for value in node] if isinstance(node, list) else node


def _document(name: str, title: str, description: str, examples: Sequence[Any], schema: Schema) -> Schema:
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": f"urn:mqtwin:{name}", "title": title}
    rest = {key: value for key, value in schema.items() if key != "description"}
    return _plain({**head, "description": description, **rest, "examples": msgspec.to_builtins(examples)})


def _examples_of(page: str, title: str) -> list[Any]:
    """Return the examples that a page shows under a title, each a JSON text, or a line of JSON texts."""
    block = re.compile(rf'^```json title="{title}"\n(.*?)^```$', re.MULTILINE | re.DOTALL)
    text = "".join(block.findall((PAGES / page).read_text(encoding="utf-8")))
    decoder, examples = json.JSONDecoder(), []
    while text := text.strip():
        value, end = decoder.raw_decode(text)
        examples.append(value)
        text = text[end:]
    return examples


def _when(condition: Schema, consequence: Schema, comment: str = "") -> Schema:
    return ({"$comment": comment} if comment else {}) | {"if": condition, "then": consequence}


# --- schemas ---------------------------------------------------------------------------------------------------------


def _state() -> Schema:
    defs = _defs(StateRecord, *STATES.values())
    common = defs.pop("StateRecord")
    common["properties"]["kind"] |= {"enum": list(STATES)}
    for kind, record in STATES.items():
        own = defs.pop(record.__name__)
        shared = common["properties"]
        own["properties"] = {name: value for name, value in own["properties"].items() if name not in shared}
        own["required"] = list(own["properties"])
        defs[kind] = own
    common["allOf"] = [_when({"properties": {"kind": {"const": kind}}}, {"$ref": f"#/$defs/{kind}"}) for kind in STATES]
    description = (
        "The state of one store. The key of the record is the store's name; the last record of a key counts, and a "
        "batch writes no more than one per store. Fields may be added."
    )
    return _document(
        "state", "State record", description, _examples_of("state.md", "state record"), common | {"$defs": defs}
    )


def _alert() -> Schema:
    defs = _defs(AlertRecord)
    record = defs.pop("AlertRecord")
    record["properties"] = {
        "specversion": {"const": "1.0"},
        "source": {"type": "string", "format": "uri-reference", "minLength": 1},
        "datacontenttype": {"const": "application/json"},
        **record["properties"],
    }
    record["required"] = list(record["properties"])

    def status(word: str) -> Schema:
        return {"properties": {"data": {"properties": {"status": {"const": word}}}}}

    record |= _when({"properties": {"type": {"const": "mqtwin.alert.cleared"}}}, status("cleared"))
    record["else"] = status("open")
    description = (
        "A CloudEvent 1.0 in structured mode. The key of the record is data.alert_id. The same input gives the same "
        "ids and content, so a second delivery is harmless."
    )
    return _document("alert", "Alert", description, _examples_of("alerts.md", "alert"), record | {"$defs": defs})


def _note() -> Schema:
    note = _defs(Note)["Note"]
    of_acted = _when({"properties": {"kind": {"const": "acted"}}}, {"properties": {"action": {"type": "string"}}})
    of_acted["else"] = {"properties": {"action": {"type": "null"}}}
    of_comment = _when({"properties": {"kind": {"const": "comment"}}}, {"properties": {"text": {"type": "string"}}})
    note["allOf"] = [of_acted, of_comment]
    alert_id, who = "QSG1/APP1/full-forecast/smds/QM01/1795137305426826", "ann"
    examples = [
        Note(alert_id=alert_id, kind="acknowledged", action=None, text="on it", who=who, time="2026-11-20T01:46:00Z"),
        Note(alert_id=alert_id, kind="acted", action="getters", text=None, who=who, time="2026-11-20T01:52:10Z"),
    ]
    description = (
        "What somebody did about an alert, or has to say. The key of the record is alert_id. Nobody checks who it is "
        "from."
    )
    return _document("note", "Note", description, examples, note)


def _act_defs() -> dict[str, Schema]:
    defs = _defs(*get_args(ActRecord))
    for record in get_args(ActRecord):
        tag = {"description": "The change of the request.", "const": record.__struct_config__.tag}
        defs[record.__name__]["properties"]["change"] = tag
    return defs


def _act() -> Schema:
    records = [{"$ref": f"#/$defs/{record.__name__}"} for record in get_args(ActRecord)]
    schema = {"oneOf": records, "$defs": _act_defs()}
    description = (
        "A change that somebody requests, and what became of it. The key of the record is id. Of records at the same "
        "time the first in the topic counts."
    )
    return _document("act", "Act", description, _examples_of("acts.md", "acts"), schema)


def _dead_letter() -> Schema:
    defs = _defs(LetterHeaders, ReplayedLetter)
    headers, replayed = defs["LetterHeaders"], defs["ReplayedLetter"]
    for letter in (headers, replayed):
        letter["properties"]["reason"] = {"$ref": "#/$defs/reason"}
    replayed["oneOf"] = [{"required": ["value"]}, {"required": ["value_base64"]}]
    replayed["examples"] = msgspec.to_builtins(
        [
            ReplayedLetter("unknown-op", 'op is "PEEK"; expected: one of PUT, GET, COMMIT', 17, value='{"op":"PEEK"}'),
            ReplayedLetter(
                "not-json", "JSON is malformed; expected: one JSON object in UTF-8", 18, value_base64=b"\xff"
            ),
        ]
    )
    reason = {
        "description": "A stable code.",
        "oneOf": [{"const": reason.value, "description": reason.sentence} for reason in Reason],
    }
    headers["$defs"] = {"reason": reason, "replayed": replayed}
    examples = _examples_of("events.md", "dead letter headers")
    return _document("dead-letter", "Headers of a dead letter", headers["description"], examples, headers)


def _report() -> Schema:
    defs = _defs(ReportRecord, ReadMark)
    record, mark = defs.pop("ReportRecord"), defs.pop("ReadMark")
    schema = {
        "type": "object",
        "required": ["store"],
        "oneOf": [{"required": ["source", "reports"]}, {"required": ["caught_up"]}],
        "properties": record["properties"] | mark["properties"],
        "$defs": defs,
    }
    gib, tick = 1 << 30, 179_517_601
    structure = StructureValues(size=4 * gib, scm_max=8 * gib, scm_used=gib, aug_fixed=8 << 20, aug_dynamic=21_474_836)
    traffic = QueueFileValues(puts=207_000, gets=207_000, depth=12)
    log = LogValues(records=3, ends=bytes(range(1, 9)), in_file=40, at_checkpoint=56, file=64)
    examples = [
        ReadMark("CF01", caught_up=True),
        ReportRecord(
            "CF01", "QSG1/APP1", [ReportFields(tick, tick + 2, structure), ReportFields(tick + 3, tick + 3, None)]
        ),
        ReportRecord("UC01", "UC01QM01/REQUEST", [ReportFields(tick, tick, traffic)]),
        ReportRecord("QMD1", "QMD1/INVOICES", [ReportFields(tick, tick, log)]),
    ]
    description = (
        "The reports of one store to a shared store in one batch. The job writes this topic in one batch and reads it "
        "in a later one. A second delivery changes nothing. Or a mark (caught_up), whether all events that existed "
        "have been read."
    )
    return _document("report", "Reports", description, examples, schema)


# --- the schema of an event ------------------------------------------------------------------------------------------

_KINDS = {
    Kind.STRING: ("string", "minLength", "maxLength"),
    Kind.INTEGER: ("integer", "minimum", "maximum"),
    Kind.NUMBER: ("number", "exclusiveMinimum", "maximum"),
    Kind.BOOLEAN: ("boolean", "", ""),
    Kind.OBJECT: ("object", "", ""),
}
_DAY = "(1999-12-31|(20[0-9]{2}|2100)-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])|2101-01-01)"
_CLOCK = r"([01][0-9]|2[0-3]):[0-5][0-9]:([0-5][0-9]|60)(\.[0-9]+)?([Zz]|[+-]([01][0-9]|2[0-3]):[0-5][0-9])"
_DEFAULTS = {"count": 1, "priority": 0, "persistent": False, "direct": False, "reason": 0}
_NOT_NULL = {"not": {"type": "null"}}


def _event_field(field: Field) -> Schema:
    """Return the schema of a field of an event, without its text."""
    if field.kind is Kind.TIME:
        text = {"type": "string", "format": "date-time", "pattern": f"^{_DAY}[Tt]{_CLOCK}$"}
        return {"oneOf": [text, {"type": "integer", "minimum": TIME_LOW, "maximum": TIME_HIGH - 1}]}
    if field.name == "op":
        return {"enum": list(OPS)}
    if field.name == "plan":
        return {}  # in other events anything
    kind, low, high = _KINDS[field.kind]
    bounds = {} if field.high is None else {low: field.low, high: field.high}
    default = {"default": _DEFAULTS[field.name]} if field.name in _DEFAULTS else {}
    return {"type": kind if field.needed_by == OPS else [kind, "null"], **bounds, **default}


def _event() -> Schema:
    texts = texts_of(Event)
    needed: dict[tuple[str, ...], list[str]] = {}
    for field in FIELDS:
        needed.setdefault(field.needed_by, []).append(field.name)
    rules = [
        _when(
            {"properties": {"op": {"enum": list(ops)}}},
            {"required": names, "properties": dict.fromkeys(names, _NOT_NULL)},
        )
        for ops, names in needed.items()
        if ops not in ((), OPS)
    ]
    silent = {"type": "object", "required": [SILENT.name], "properties": {SILENT.name: _NOT_NULL}}
    resync = {"description": "Make the twin take over what was measured.", "type": ["boolean", "null"]}
    rules += [
        _when(
            {"required": ["op", "direct"], "properties": {"op": {"const": "PUT"}, "direct": {"const": True}}},
            {"properties": {"uow": {"type": "null"}}},
            "a put to a waiting getter is outside syncpoint",
        ),
        _when(
            {"required": ["op"], "properties": {"op": {"const": "PLAN"}}},
            {"properties": {"plan": {"type": "object"}}},
        ),
        _when(
            {"required": ["msgid"], "properties": {"msgid": {"type": "string"}}},
            {"properties": {"count": {"enum": [1, None]}}},
            "count with a msgid",
        ),
        _when(
            {"required": [_ALL], "properties": {"op": {"const": "MEASURE"}}},
            {"properties": {_ALL: {"$ref": "#/$defs/numbers", "properties": {"resync": resync}}}},
            "measured of a MEASURE holds numbers of the state record",
        ),
        _when(
            {"required": [_ALL], "properties": {"op": {"const": "HEARTBEAT"}, _ALL: silent}},
            {
                "required": ["store"],
                "properties": {
                    "store": _NOT_NULL,
                    _ALL: {
                        "properties": {SILENT.name: {"type": "integer", "minimum": SILENT.low, "maximum": SILENT.high}}
                    },
                },
            },
            "a HEARTBEAT that reports a silent source",
        ),
    ]
    schema = {
        "type": "object",
        "required": needed[OPS],
        "properties": {field.name: {"description": texts[field.name], **_event_field(field)} for field in FIELDS},
        "allOf": rules,
        "$defs": {"numbers": _numbers()},
    }
    description = (
        "A fact: one operation of a queue manager. Unknown fields are ignored, and null is equivalent to absent. "
        "Integers are written without a decimal point: 5, not 5.0 (JSON Schema does not distinguish them, mqtwin "
        "does). Queue managers, queues, stores and attributes must also be in the estate."
    )
    examples = [*_examples_of("events.md", "event"), *_examples_of("events.md", "events")]
    return _document("event", "Event", description, examples, schema)


def _numbers() -> Schema:
    """Return the schema of `measured` of a MEASURE."""

    def bounded(kind: str, bounds: Mapping[str, int]) -> Schema:
        return {name: {"type": [kind, "null"], "minimum": 0, "maximum": high} for name, high in bounds.items()}

    smds = {"type": "object", "properties": bounded("integer", MEASURED_SMDS)}
    times = {name: {"type": ["string", "null"], "format": "date-time"} for name in QUEUE_TIMES}
    queue = {
        "type": "object",
        "required": ["name"],
        "properties": {
            "name": {"type": "string", "minLength": 1, "maxLength": MAX_NAME},
            **bounded("integer", MEASURED_QUEUE),
            **times,
        },
    }
    return {
        "description": "At least one of these, not null.",
        "type": "object",
        "properties": {
            **bounded("integer", MEASURED_COUNTS),
            **bounded("number", MEASURED_NUMBERS),
            "smds": {"description": "By queue manager.", "type": ["object", "null"], "additionalProperties": smds},
            "scm": {"type": ["object", "null"], "properties": bounded("integer", MEASURED_SCM)},
            "queues": {
                "description": "Facts by queue.",
                "type": ["array", "null"],
                "maxItems": MAX_QUEUES,
                "items": queue,
            },
            "asked": {
                "description": "Queue managers that answered about the handles of the queues.",
                "type": ["array", "null"],
                "maxItems": MAX_ASKED,
                "items": {"type": "string", "minLength": 1},
            },
        },
        "not": {"properties": {name: {"type": "null"} for name in MEASURED}},
    }


def _measured_types() -> str:
    """Return the types of the content of a MEASURE, as Python."""
    smds, scm = ((name, "int") for name in MEASURED_SMDS), ((name, "int") for name in MEASURED_SCM)
    numbers = chain(((name, "int") for name in MEASURED_COUNTS), ((name, "float") for name in MEASURED_NUMBERS))
    of_queue = (
        ("name", "Required[str]"),
        *((name, "int") for name in MEASURED_QUEUE),
        *((name, "str") for name in QUEUE_TIMES),
    )
    parts = (
        *(("smds", "dict[str, DataSetMeasured]"), ("scm", "ScmMeasured")),
        *(("queues", "list[QueueMeasured]"), ("asked", "list[str]"), ("resync", "bool")),
    )
    types = (
        ("DataSetMeasured", "Fields of a shared message data set.", smds),
        ("ScmMeasured", "Fields of the storage class memory of a structure.", scm),
        ("QueueMeasured", "Facts of a queue, as DISPLAY QSTATUS shows them.", of_queue),
        (
            "Measured",
            "Content of a MEASURE of any store, which takes the fields of its kind. resync: take the measurement over.",
            chain(numbers, parts),
        ),
    )
    classes = (
        "\n".join(
            [
                f'class {name}(TypedDict, total=False):\n    """{text}"""\n',
                *(f"    {own}: {kind}" for own, kind in fields),
            ]
        )
        for name, text, fields in types
    )
    return "\n" + "\n\n\n".join(classes) + "\n"


_SCHEMAS: dict[str, Callable[[], Schema]] = {
    "event": _event,
    "state": _state,
    "alert": _alert,
    "note": _note,
    "act": _act,
    "dead-letter": _dead_letter,
    "report": _report,
}


# --- tables of pages -------------------------------------------------------------------------------------------------


def _tables() -> dict[tuple[str, str], str]:
    """Return the tables by page and name."""
    state = _defs(StateRecord, *STATES.values())
    alert, note = _defs(AlertRecord), _defs(Note)
    apart = {
        "StateForecast",
        "ForecastScores",
        "ElementDemand",
        "PageDemand",
        "BlockDemand",
        "DataSetState",
        "ScmState",
    }
    common = state["StateRecord"]["properties"]
    sections: dict[str, Schema] = {
        record: state[record]
        for record in ("StateRecord", "StateForecast", "ForecastScores", "DataSetState", "ScmState")
    }
    for record in STATES.values():
        own = state[record.__name__]["properties"].items()
        sections[record.__name__] = {"properties": {name: schema for name, schema in own if name not in common}}
    tables = {("state.md", name): _fields_table(schema, state, apart) for name, schema in sections.items()}
    demand = {name: state[name]["properties"] for name in ("ElementDemand", "PageDemand", "BlockDemand")}
    tables["state.md", "demand"] = _fields_table({"properties": dict(chain(*map(dict.items, demand.values())))}, state)
    tables["alerts.md", "AlertRecord"] = _fields_table(alert["AlertRecord"], alert, {"AlertData"})
    tables["alerts.md", "AlertData"] = _fields_table(alert["AlertData"], alert, {"Action", "DoneAction"})
    tables["alerts.md", "Action"] = _fields_table(alert["Action"], alert)
    tables["incidents.md", "DoneAction"] = _fields_table(alert["DoneAction"], alert)
    tables["incidents.md", "Note"] = _fields_table(note["Note"], note)
    act = _act_defs()
    for name in ("Requested", "Expectation", "Measured"):
        tables["acts.md", name] = _fields_table(act[name], act, {"Expectation"})
    texts = texts_of(Event)
    tables["events.md", "fields"] = _table(
        ("field", "type", "meaning"),
        ([f"`{field.name}`", _type_words(field), texts[field.name]] for field in FIELDS),
    )
    tables["events.md", "reasons"] = _table(
        ("reason", "meaning"), ([f"`{reason}`", reason.sentence] for reason in Reason)
    )
    tables |= {("estate.md", section): _attributes_table(section) for section in _MODELS}
    tables["estate.md", "forecast"] = _forecast_table()
    tables["surfaces.md", "metrics"] = _table(("metric", "kind", "labels", "meaning"), _metric_rows())
    return tables


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(cell.removesuffix('.') for cell in line)} |" for line in lines)


def _fields_table(schema: Schema, defs: Mapping[str, Schema], apart: AbstractSet[str] = frozenset()) -> str:
    return _table(("field", "meaning"), _field_rows(schema, defs, apart))


def _field_rows(
    schema: Schema, defs: Mapping[str, Schema], apart: AbstractSet[str], before: str = ""
) -> Iterator[list[str]]:
    """Yield the fields of a record, and below each those of the records in it, but for the ones that stand apart."""
    for name, own in schema["properties"].items():
        if name == "type" and "description" not in own:
            continue
        yield [f"`{before}{name}`", own["description"]]
        inner, path = own, f"{before}{name}"
        while "$ref" not in inner:
            if "anyOf" in inner:
                inner = inner["anyOf"][0]
            elif "items" in inner:
                inner, path = inner["items"], f"{path}[]"
            elif isinstance(inner.get("additionalProperties"), dict):
                inner, path = inner["additionalProperties"], f"{path}.*"
            else:
                break
        record = inner.get("$ref", "").rpartition("/")[2]
        if record and record not in apart:
            yield from _field_rows(defs[record], defs, apart, f"{path}.")


def _type_words(field: Field) -> str:
    """Return the type of a field of an event, with its bounds."""
    if field.kind is Kind.TIME:
        return "RFC 3339 string, or integer microseconds since 1970, UTC"
    words = _KINDS[field.kind][0]
    if field.high is None:
        return words
    if field.kind is Kind.NUMBER:
        return f"{words} above 0, at most {field.high:,}"
    unit = " bytes" if field.kind is Kind.STRING else ""
    high = "" if field.high.bit_length() >= 63 else f" to {field.high:,}{unit}"
    return f"{words}, {field.low}{high}" if high else f"{words} from {field.low}"


_MODELS = {  # of the tables of an estate
    "structure": Structure,
    "smds": Smds,
    "queue_manager": QueueManager,
    "coupling_facility": CouplingFacility,
    "page_set": PageSet,
    "queue_file": QueueFile,
    "uniform_cluster": UniformCluster,
}
_DEFAULTS_IN_WORDS = {
    "structure": {"init_size": "`size`", "cf_level": f"{TOML_CF_LEVEL}; 3 in MQSC", "offload": "SMDS at 5, else NONE"},
    "smds": {"secondary": "10 % of the current size", "max_size": "16T"},
    "queue_manager": {"expiry_interval_s": "0 on z/OS, 300 on other platforms", "silence_s": "never"},
    "coupling_facility": {"cflevel": "not known", "dump_space": "0, or DUMPSPACE of its CFRM policy"},
    "page_set": {"max_pages": f"{MAX_PAGES:,}"},
    "queue_file": {"max_size": "2,088,960M"},
}
_REQUIRED = {
    "structure": ("size",),
    "page_set": ("pages",),
}  # here or in an imported text


def _attributes_table(section: str) -> str:
    """Return the attributes of a table of the estate, but for those of forecasts: default, imported from, meaning."""
    model, words = _MODELS[section], _words_of(section)
    texts = texts_of(model)
    defaults = {own.name: own.default for own in dataclasses.fields(model)}
    required = (*SECTIONS[section].required, *_REQUIRED.get(section, ()))
    rows = []
    for name in (own for own in SECTIONS[section].attributes if own not in FORECAST):
        default = "required" if name in required else _default_in_words(section, name, defaults[name])
        rows.append([f"`{name}`", default, *([words.get(name, "")] if words else []), texts[name]])
    imported = ("imported from",) if words else ()
    return _table(("attribute", "default", *imported, "meaning"), rows)


def _forecast_table() -> str:
    """Return the attributes of forecasts, which every store that is forecast has."""
    texts = texts_of(ForecastSettings)
    defaults = {own.name: own.default for own in dataclasses.fields(ForecastSettings)}
    words = {None: "that of `[alerts]`, else 1.5"}
    rows = [[f"`{name}`", words.get(defaults[name]) or f"{defaults[name]:g}", texts[name]] for name in FORECAST]
    return _table(("attribute", "default", "meaning"), rows)


def _words_of(section: str) -> dict[str, str]:
    """Return the words of MQSC and CFRM for the attributes of a table."""
    words = {}
    for name, attribute in SECTIONS[section].attributes.items():
        for text, own in (("MQSC", attribute.mqsc), ("CFRM", attribute.cfrm)):
            if own:
                words[name] = f"{text} {own}"
    return words


def _default_in_words(section: str, name: str, default: object) -> str:
    if name in _DEFAULTS_IN_WORDS.get(section, {}):
        return _DEFAULTS_IN_WORDS[section][name]
    if default is None or isinstance(default, bool):
        return "none" if default is None else str(default).lower()
    if isinstance(default, int):
        return format_size(default) if default % 1024 == 0 else f"{default:,}"
    return f"{default:g}" if isinstance(default, float) else str(default)


def _metric_rows() -> Iterator[list[str]]:
    words = {RESOURCE: "of a resource", STORE: "of a store"}
    for metric in CATALOGUE.values():
        begin = next((names for names in words if metric.labels[: len(names)] == names), ())
        labels = ([words[begin]] if begin else []) + [f"`{label}`" for label in metric.labels[len(begin) :]]
        yield [f"`{metric.name}`", metric.kind, ", ".join(labels), metric.text]


def main() -> int:
    """Write what has changed."""
    for path, text in outputs().items():
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
            print(path.relative_to(ROOT))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
