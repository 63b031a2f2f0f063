"""The AsyncAPI document: topics, who writes and reads them, their messages. `make schemas` writes it."""

from __future__ import annotations

import re
from typing import Any

from streams.kafka.topics import Topics
from twin.events import ARROW_SCHEMA, CONTENT_TYPES

Schema = dict[str, Any]

_STORE_NAME = {"$ref": "#/components/schemas/storeName"}
_CLOUD_EVENT = "application/cloudevents+json; charset=UTF-8"
_CHANNELS = {  # title, description, messages, cleanup policy
    "events": (
        "Events",
        (
            "Facts in the order in which they happened: the order of a store's events is that of its partition. "
            "The header `content-type` specifies the format of the value; without it the value is one JSON event."
        ),
        ("event", "eventLines", "eventColumns"),
        "delete",
    ),
    "state": ("States", "The state of each store. The last record of a key counts.", ("state",), "compact"),
    "alerts": (
        "Alerts",
        "Alerts as CloudEvents 1.0 in structured mode. The last record of a key shows if the alert is open.",
        ("alert",),
        "compact",
    ),
    "deadLetters": (
        "Dead letters",
        "Events that were rejected, each once, with the reason in the headers.",
        ("deadLetter",),
        "delete",
    ),
    "notes": (
        "Notes",
        (
            "What people did about alerts, or have to say. The streaming job never reads it: alerts and states are "
            "functions of the events."
        ),
        ("note",),
        "delete",
    ),
    "acts": (
        "Acts",
        (
            "Changes that people request and approve, and what became of them. The streaming job never reads it. "
            "Whoever may write here may have a command of the site run within the limits of its list."
        ),
        ("act",),
        "delete",
    ),
    "reports": (
        "Reports",
        (
            "Reports of stores to those they share: structures with SCM to their coupling facility, queue files of "
            "members to their uniform cluster. Only the streaming job writes and reads this topic."
        ),
        ("reports",),
        "delete",
    ),
}
_OPERATIONS = {
    "receiveEvents": "The streaming job reads events.",
    "sendState": "The streaming job writes the state of each store that had events, once per batch.",
    "sendAlerts": "The streaming job writes each change of an alert. A second delivery has the same id and content.",
    "sendDeadLetters": "The streaming job writes rejected events.",
    "sendNotes": "The console, `mqtwin acted` and `mqtwin acknowledge` write notes.",
    "receiveNotes": "The console shows notes beside their alerts, `mqtwin report` beside their incidents.",
    "sendActs": "The console writes what people request and approve, `mqtwin acts run` what became of it.",
    "receiveActs": "The console shows requests, `mqtwin acts run` hands over what is approved.",
    "sendReports": "The streaming job writes the reports of a store, one record per source and batch.",
    "receiveReports": "The streaming job reads the reports in a later batch. A second delivery changes nothing.",
}


def asyncapi(lines: str) -> Schema:
    """Return the document. lines: events as an example, one a line."""
    topics = Topics()
    addresses = {name: getattr(topics, "dlq" if name == "deadLetters" else name) for name in _CHANNELS}
    return {
        "asyncapi": "3.0.0",
        "id": "urn:mqtwin",
        "info": {
            "title": "mqtwin",
            "version": "1.0.0",
            "description": "Topics of mqtwin, the live twin of IBM MQ storage. Producers write the operations of queue "
            "managers to `mqtwin.events`; subscribers read states, alerts and dead letters. The prefix `mqtwin` of all "
            "topics is an option (`--topic-prefix`). Fields may be added; a renamed or removed field has a line in the "
            "changelog.",
            "license": {"name": "Apache-2.0", "url": "https://www.apache.org/licenses/LICENSE-2.0"},
        },
        "defaultContentType": "application/json",
        "channels": {
            name: {
                "address": addresses[name],
                "title": title,
                "description": description,
                "messages": {own: {"$ref": f"#/components/messages/{own}"} for own in messages},
                "bindings": _kafka(topic=addresses[name], topicConfiguration={"cleanup.policy": [policy]}),
            }
            for name, (title, description, messages, policy) in _CHANNELS.items()
        },
        "operations": {name: _operation(name, summary) for name, summary in _OPERATIONS.items()},
        "components": {
            "messages": _messages(lines),
            "schemas": {
                "storeName": {
                    "type": "string",
                    "description": "Name of a store: QSG1/APP1 (structure), QM01/PS04 (page set), QMD1/INVOICES (queue "
                    "file), CF01 (coupling facility), UC01 (uniform cluster).",
                    "examples": ["QSG1/APP1"],
                }
            },
        },
    }


def _kafka(**binding: object) -> Schema:
    return {"kafka": {**binding, "bindingVersion": "0.5.0"}}


def _operation(name: str, summary: str) -> Schema:
    action, channel = re.fullmatch("(send|receive)(.*)", name).groups()
    channel = channel[0].lower() + channel[1:]
    return {
        "action": action,
        "summary": summary,
        "channel": {"$ref": f"#/channels/{channel}"},
        "messages": [{"$ref": f"#/channels/{channel}/messages/{message}"} for message in _CHANNELS[channel][2]],
    }


def _messages(lines: str) -> Schema:
    json_type, lines_type, arrow_type = CONTENT_TYPES
    columns = {field.name: str(field.type) for field in ARROW_SCHEMA}
    of_alert = {"type": "string", "description": "The alert's `alert_id`."}
    of_letter = {
        "type": "string",
        "description": "Topic, partition, offset and index, joined by slashes.",
        "examples": ["mqtwin.events/0/4711/0"],
    }
    messages = {
        "event": {"title": "One event", **_headers(json_type, needed=False), "payload": _of_file("event")},
        "eventLines": {
            "title": "Events, one per line",
            "description": "Each line is one event as in `event`. Empty lines are skipped.",
            **_headers(lines_type),
            "payload": {"type": "string"},
            "examples": [{"name": "lines", "headers": {"content-type": lines_type}, "payload": lines}],
        },
        "eventColumns": {
            "title": "Events in columns",
            "description": "An Arrow IPC stream with one row per event and the fields as columns. A missing column is "
            "absent in every row. Strings may be plain or dictionary-encoded, integers of any width, `time` a "
            "timestamp of any unit with a time zone. `attributes` and `measured` are JSON text. `x-arrow-columns` "
            "lists the types that mqtwin writes.",
            **_headers(arrow_type),
            "payload": {"type": "string", "format": "binary", "x-arrow-columns": columns},
        },
        "state": {"title": "State of a store", "contentType": json_type, "payload": _of_file("state")},
        "alert": {"title": "Change of an alert", **_headers(_CLOUD_EVENT), "payload": _of_file("alert")},
        "deadLetter": {
            "title": "A rejected event",
            "description": "The original event: the JSON text, the line, or the Arrow row as JSON; the whole stream if "
            "that is damaged.",
            "contentType": "application/octet-stream",
            "headers": _of_file("dead-letter"),
            "payload": {"type": "string", "format": "binary"},
        },
        "note": {"title": "Note on an alert", "contentType": json_type, "payload": _of_file("note")},
        "act": {"title": "Requested change", "contentType": json_type, "payload": _of_file("act")},
        "reports": {
            "title": "Reports of a store to a shared store",
            **_headers(json_type, needed=False),
            "payload": _of_file("report"),
        },
    }
    of_act = {"type": "string", "description": "The request's `id`."}
    keys = {"act": of_act, "alert": of_alert, "note": of_alert, "deadLetter": of_letter}
    return {
        name: {"name": name, **message, "bindings": _kafka(key=keys.get(name, _STORE_NAME))}
        for name, message in messages.items()
    }


def _headers(content_type: str, *, needed: bool = True) -> Schema:
    header = {"type": "object", "properties": {"content-type": {"type": "string", "const": content_type}}}
    return {"contentType": content_type, "headers": header | ({"required": ["content-type"]} if needed else {})}


def _of_file(name: str) -> Schema:
    draft = "application/schema+json;version=draft-2020-12"
    return {"schemaFormat": draft, "schema": {"$ref": f"./{name}.schema.json"}}
