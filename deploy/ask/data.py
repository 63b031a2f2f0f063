"""Answers of the tools, texts of others as data, and a search in the documentation.

- Answers: times are RFC 3339, UTC; every number has its unit in its name. They are made of records that exist: of the
  console's page, of what-if and advice, of the report. `full_in_p50_s` and its neighbours are the seconds until full if
  it becomes full, in the order p10, median, p90; null: that is not likely.
- Texts of others are quoted by JSON, without a control or direction character, and cut. Every answer passes here as a
  whole, so no tool can leave this out.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from deploy.show.terminal import printable


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """An answer. more: what was left out, and how to ask for it; "": nothing."""

    more: str = ""


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """A future: what is full first, when, and with which probability; messages that fit until puts fail."""

    resource: str
    full_probability_pct: float
    full_in_p10_s: float | None
    full_in_p50_s: float | None
    full_in_p90_s: float | None
    messages_that_fit_count: int | None = None


class Call(msgspec.Struct, frozen=True, kw_only=True):
    """A moment at which people were called."""

    time: str
    store: str
    severity: str
    change: str
    cause: str


class OverviewAnswer(Answer, frozen=True, kw_only=True):
    """The source, its time, and counts. problems: reasons for which it may be old, or wrong."""

    source: str
    as_of: str | None
    written_ago_s: float | None
    first_moment: str | None
    last_moment: str | None
    stores_count: int
    open_incidents_count: int
    open_pages_count: int
    events_count: int
    dead_letters_count: int
    problems: list[str]
    latest_calls: list[Call]


class StoreLine(msgspec.Struct, frozen=True, kw_only=True):
    """A store in the list. why: the cause of its most urgent open incident; "": none is open."""

    store: str
    kind: str
    severity: str
    fullest_resource: str
    usage_pct: float | None
    usage_of_maximum_pct: float | None
    full_now: list[str]
    full_in_p50_s: float | None
    full_probability_pct: float | None
    rises: str
    why: str


class StoresAnswer(Answer, frozen=True, kw_only=True):
    """Stores, the most urgent first."""

    as_of: str | None
    stores: list[StoreLine]


class ResourceLine(msgspec.Struct, frozen=True, kw_only=True):
    """A resource of a store. usage_pct is of its present size, usage_of_maximum_pct of what it can grow to."""

    resource: str
    label: str
    usage: str
    amount: str
    usage_pct: float | None
    usage_of_maximum_pct: float | None


class StoreAnswer(Answer, frozen=True, kw_only=True):
    """A store at a moment."""

    store: str
    kind: str
    as_of: str | None
    severity: str
    full_now: list[str]
    rises: str
    not_known: str
    seen: str
    messages_count: int | None
    uncommitted_count: int | None
    in_doubt_count: int | None
    refused_puts_count: int | None
    puts_wanted_per_s: float | None
    fidelity_pct: float | None
    resources: list[ResourceLine]
    forecasts: list[Outcome]
    planned_work: list[str]
    open_incident_ids: list[str]


class IncidentLine(msgspec.Struct, frozen=True, kw_only=True):
    """An incident by its root alert. calls_people: it is a page, not a watch."""

    incident_id: str
    alert_id: str
    store: str
    severity: str
    calls_people: bool
    is_open: bool
    opened: str
    condition: str
    resource: str
    cause: str
    evidence: list[str]
    first_action: str
    notes: list[str]
    other_alert_ids: list[str]


class IncidentsAnswer(Answer, frozen=True, kw_only=True):
    """Incidents, the most urgent first."""

    as_of: str | None
    incidents: list[IncidentLine]


class StepLine(msgspec.Struct, frozen=True, kw_only=True):
    """A step of an action. statement: what a person may type after a look at it; null: nothing is typed."""

    text: str
    statement: str | None


class ActionLine(msgspec.Struct, frozen=True, kw_only=True):
    """An action of the runbook."""

    action_id: str
    summary: str
    effect: str | None
    precondition: str | None
    steps: list[StepLine]
    risk: str | None
    undo: str | None


class FillerLine(msgspec.Struct, frozen=True, kw_only=True):
    """A queue that fills a resource, with its share of the growth."""

    queue: str
    growth_share_pct: float


class AlertAnswer(Answer, frozen=True, kw_only=True):
    """An alert with its evidence and the steps of its runbook, the best action first."""

    alert_id: str
    store: str
    severity: str
    condition: str
    resource: str
    is_open: bool
    opened: str
    as_of: str
    usage_pct: float | None
    full_probability_pct: float | None
    full_in_p10_s: float | None
    full_in_p50_s: float | None
    full_in_p90_s: float | None
    cause: str
    evidence: list[str]
    fillers: list[FillerLine]
    actions: list[ActionLine]
    notes: list[str]


class ReaderLine(msgspec.Struct, frozen=True, kw_only=True):
    """Who has a queue open. Null: it is not known. unread_since: from when no handle was open for input."""

    queue: str
    depth_messages: int | None
    getters_count: int | None
    putters_count: int | None
    uncommitted_count: int | None
    oldest_message_s: int | None
    last_get: str | None
    last_put: str | None
    unread_since: str | None
    measured_at: str | None
    asked_queue_managers: list[str]


class ReadersAnswer(Answer, frozen=True, kw_only=True):
    """The deepest queues of a store and who reads them."""

    store: str
    as_of: str | None
    queues: list[ReaderLine]


class WhatIfReply(Answer, frozen=True, kw_only=True):
    """A store as it is, and as it would be."""

    as_of: str
    before: Outcome
    after: Outcome
    horizon_s: float
    note: str


class PlanLine(msgspec.Struct, frozen=True, kw_only=True):
    """A change that keeps the promise, and the outcome with it."""

    title: str
    steps: list[str]
    after: Outcome


class AdviceReply(Answer, frozen=True, kw_only=True):
    """The least changes with which a store is not full in the next hours; none where nothing has to change."""

    as_of: str
    nothing_has_to_change: bool
    note: str
    plans: list[PlanLine]
    left_out: list[str]


class HindsightReply(Answer, frozen=True, kw_only=True):
    """The outcome if settings had been in effect from a moment on."""

    since: str
    puts_count: int
    refused_as_it_was_count: int
    refused_with_settings_count: int
    first_full: str | None
    peak_pct: float
    note: str


class ReportedIncident(msgspec.Struct, frozen=True, kw_only=True):
    """An incident of the period. lead_s: from the page to the first 2192; null: no page before one."""

    store: str
    opened: str
    paged: str | None
    over: str | None
    urgency: str
    condition: str
    verdict: str | None
    lead_s: float | None
    full_minutes: int
    avoided_minutes: int
    cause: str
    actions: list[str]


class ReportedStore(msgspec.Struct, frozen=True, kw_only=True):
    """A store in the period: its highest usage, and how long it would take to fill at its growth."""

    store: str
    highest_pct: float
    highest_resource: str
    highest_time: str
    full_minutes: int
    room_at_this_growth_days: float | None


class ReportAnswer(Answer, frozen=True, kw_only=True):
    """The report of a period: who was called and rightly, minutes of 2192, what came close."""

    since: str
    until: str
    events_count: int
    pages_count: int
    pages_in_time_count: int
    pages_late_count: int
    pages_false_count: int
    pages_averted_count: int
    fillings_count: int
    fillings_unheard_count: int
    full_minutes: int
    avoided_minutes: int
    incidents: list[ReportedIncident]
    stores: list[ReportedStore]


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """A line of a plan: its cells, by the headings of the columns, with their units."""

    cells: list[str]


class SizeAnswer(Answer, frozen=True, kw_only=True):
    """A plan of storage, as `mqtwin size` prints it."""

    store: str
    columns: list[str]
    lines: list[Line]
    warnings: list[str]
    commands: str


class PassageLine(msgspec.Struct, frozen=True, kw_only=True):
    """A section of the documentation."""

    page: str
    heading: str
    excerpt: str


class DocumentationAnswer(Answer, frozen=True, kw_only=True):
    """Sections of the documentation, the best first."""

    sections: list[PassageLine]


# --- texts of others, in answers of a bounded size --------------------------------------------------------------------
# Whoever names a queue, writes a note or sends a message that is refused could write to the program that asks.

MAX_BYTES = 4_000  # of a result
MAX_TEXT = 600  # characters of one text
_SHORTER = (300, 120, 40, 12)  # the same where a result has no list left to cut


class Reply(NamedTuple):
    """An answer."""

    content: Answer
    paged: str = ""  # its list that is asked for in parts; "": none
    skipped: int = 0  # items of that list before these
    total: int = 0  # items of that list in all


def as_data(text: str, limit: int = MAX_TEXT) -> str:
    """Return a text of others as data: control and direction characters escaped, and cut. limit: characters."""
    own = printable(text[: limit + 1])
    if len(text) <= limit and len(own) <= limit:
        return own
    return f"{own[:limit]}... ({len(text):,} characters)"


def small(reply: Reply) -> dict[str, Any]:
    """Return an answer as it is sent: its texts as data, in at most `MAX_BYTES` of JSON.

    The longest list loses its last item until it fits; `more` says how many, and how to get them.
    """
    whole = msgspec.to_builtins(reply.content)
    for limit in (MAX_TEXT, *_SHORTER):
        content: dict[str, Any] = _cleaned(whole, limit)
        left_out: dict[str, int] = {}
        while True:
            content["more"] = _more(reply, content, left_out)
            if len(msgspec.json.encode(content)) <= MAX_BYTES:
                return content
            name, longest = max(_lists(content), key=lambda own: _size(own[1]), default=("", []))
            if not longest:
                break
            longest.pop()
            left_out[name] = left_out.get(name, 0) + 1
    raise AssertionError(reply.content)  # fields are few, and each is short now


def _more(reply: Reply, content: dict[str, Any], left_out: dict[str, int]) -> str:
    texts = [reply.content.more] if reply.content.more else []
    texts += [f"{count} more of {name}" for name, count in left_out.items() if name != reply.paged]
    if reply.paged:
        following = reply.skipped + len(content[reply.paged])
        if following < reply.total:
            texts.insert(0, f"{reply.total - following} more of {reply.paged}; ask for skip={following}")
    return "; ".join(texts)


def _cleaned(content: Any, limit: int) -> Any:
    if isinstance(content, str):
        return as_data(content, limit)
    if isinstance(content, dict):
        return {as_data(key, limit): _cleaned(value, limit) for key, value in content.items()}
    if isinstance(content, list | tuple):
        return [_cleaned(value, limit) for value in content]
    return round(content, 3) if isinstance(content, float) else content


def _lists(content: dict[str, Any]) -> list[tuple[str, list[Any]]]:
    lists = []
    for name, value in content.items():
        if isinstance(value, list) and value:
            lists.append((name, value))
            if len(value) == 1 and isinstance(value[0], dict):  # of a single item its own lists are cut, too
                lists += _lists(value[0])
        elif isinstance(value, dict):
            lists += _lists(value)
    return lists


def _size(content: list[Any]) -> int:
    return len(msgspec.json.encode(content))


# --- search in the documentation --------------------------------------------------------------------------------------

_PLACES = (Path(__file__).with_name("documentation"), Path(__file__).parents[2] / "docs")
_WORD = re.compile(r"[a-z0-9]+")
_HEADING = re.compile(r"^(#{1,3}) (.+)$")
_TITLE_WEIGHT = 4  # a word of a heading counts as often


class Section(NamedTuple):
    """A section of a page. words: how often it has each."""

    page: str
    heading: str
    text: str
    words: Counter[str]


def search(query: str, limit: int) -> tuple[list[Section], int]:
    """Return the sections that answer a query best, and the number of all that have a word of it.

    The wheel has the pages beside this file (hatch_build.py); in a clone they are those of docs/.
    """
    sections = _sections()
    query_words = dict.fromkeys(_words(query))
    having = {word: sum(word in own.words for own in sections) for word in query_words}
    weights = {word: math.log(1 + len(sections) / count) for word, count in having.items() if count}

    def score(section: Section) -> float:
        rare = sum(min(3, section.words[word]) * weight for word, weight in weights.items())
        return rare / math.log(10 + section.words.total()) * sum(word in section.words for word in weights)

    ranked = sorted((own for own in sections if score(own) > 0), key=score, reverse=True)
    return ranked[:limit], len(ranked)


def excerpt(section: Section, query: str, characters: int) -> str:
    """Return the part of a section that has most words of a query, as one line."""
    query_words, lines = set(_words(query)), [line for line in section.text.splitlines() if line.strip()]
    texts = [" ".join(lines[place:]) for place in range(len(lines))]
    best = max(texts, key=lambda text: len(query_words & set(_words(text[:characters]))), default="")
    return " ".join(best.split())[:characters]


def _words(text: str) -> list[str]:
    """Return the words of a text without the endings of plurals."""
    return [word[:-1] if len(word) > 3 and word.endswith("s") else word for word in _WORD.findall(text.lower())]


@cache
def _sections() -> list[Section]:
    folder = next((place for place in _PLACES if place.is_dir()), None)
    return [] if folder is None else [own for path in sorted(folder.glob("*.md")) for own in _parts(path)]


def _parts(path: Path) -> list[Section]:
    parts: list[tuple[str, list[str]]] = [(path.stem, [])]
    is_code = False
    for line in path.read_text(encoding="utf-8").splitlines():
        is_code ^= line.startswith("```")
        heading = None if is_code else _HEADING.match(line)
        if heading is not None:
            parts.append((heading[2], []))
        else:
            parts[-1][1].append(line)
    texts = ((heading, "\n".join(lines)) for heading, lines in parts)
    return [
        Section(path.name, heading, text, Counter(_TITLE_WEIGHT * _words(heading) + _words(text)))
        for heading, text in texts
        if text.strip()
    ]
