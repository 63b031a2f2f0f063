"""``mqtwin plan``: planned work, announced and cancelled as events of the topic."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any

import msgspec
from cyclopts import App, Parameter
from cyclopts.validators import Number

from deploy.options.common import EstateFile, Flag, InputFile, KafkaOptions, open_estate
from deploy.show.document import Document, Table, Text, site_period
from deploy.show.summaries import show_progress
from deploy.show.terminal import emit, print_line, print_warnings, printable
from streams.kafka.present import read_last_states
from streams.kafka.publish import PublishResult, Record, Sender
from streams.log import configure_logging
from twin.base.errors import UsageError
from twin.base.units import as_count, as_text
from twin.estate import Estate, EstateError
from twin.estate.calendars import read_calendar
from twin.estate.errors import known_hint
from twin.estate.planned import Plan, planned_text, read_plan
from twin.events import JSON
from twin.records import PlannedWork

plan = App(name="plan")


class StorePlan(msgspec.Struct, frozen=True, kw_only=True):
    """A window of planned work with its store. work: as in the state record."""

    store: str
    work: PlannedWork


@plan.command
def add(
    store: str,
    id_: Annotated[str, Parameter(name="ID")],
    /,
    *,
    estate: EstateFile,
    kafka: KafkaOptions,
    queue: str | None = None,
    from_: Annotated[str | None, Parameter(name="--from")] = None,
    until: str | None = None,
    rrule: str | None = None,
    duration_s: Annotated[float | None, Parameter(validator=Number(gt=0, lte=1_209_600))] = None,
    messages: int | None = None,
    length: int | None = None,
    puts_per_s: Annotated[float | None, Parameter(validator=Number(gt=0, lte=10_000_000))] = None,
    getters_away: Flag = False,
    allowed_pct: Annotated[float | None, Parameter(validator=Number(gt=0, lte=100))] = None,
    comment: str | None = None,
) -> None:
    """Announce planned work of a store, as an event of the topic; one of the same id is replaced.

    Args:
        store: Name of the store, such as QSG1/APP1.
        id_: Name of the plan, by which it is cancelled.
        estate: Estate file (TOML).
        kafka: Kafka connection.
        queue: Queue that it is about. Default: the whole store.
        from_: Beginning, RFC 3339, such as 2026-11-21T22:00:00+01:00.
        until: End of the period, RFC 3339.
        rrule: Recurrence in place of --from and --until, such as FREQ=DAILY;BYHOUR=2, in the zone of the site.
        duration_s: Seconds of each window of a recurrence.
        messages: Number of messages that are put in a window.
        length: Mean bytes of a message. Default: as messages of the queue have now.
        puts_per_s: Messages put per second, in place of --messages.
        getters_away: The getters get nothing until the end of the window.
        allowed_pct: Percentage in use up to which thresholds are not reported.
        comment: What to add.
    """
    parts = {
        "id": id_,
        "queue": queue,
        "from": from_,
        "until": until,
        "rrule": rrule,
        "duration_s": duration_s,
        "messages": messages,
        "length": length,
        "puts_per_s": puts_per_s,
        "getters": "away" if getters_away else None,
        "allowed_pct": allowed_pct,
        "note": comment,
    }
    content = {name: value for name, value in parts.items() if value is not None}
    _send(open_estate(estate), kafka, [(store, content)])
    print(printable(f"{id_} is planned of {store}; mqtwin plan list shows its windows of the next 24 hours"))


@plan.command
def cancel(
    store: str, id_: Annotated[str, Parameter(name="ID")], /, *, estate: EstateFile, kafka: KafkaOptions
) -> None:
    """Cancel planned work of a store, of the estate too, as an event of the topic.

    Args:
        store: Name of the store, such as QSG1/APP1.
        id_: Name of the plan.
        estate: Estate file (TOML).
        kafka: Kafka connection.
    """
    _send(open_estate(estate), kafka, [(store, {"id": id_, "cancelled": True})])
    print(printable(f"{id_} of {store} is cancelled"))


@plan.command
def find(
    recordings: Annotated[tuple[InputFile, ...], Parameter(name="RECORDING", negative="")], /, *, estate: EstateFile
) -> int | None:
    """Propose planned work: rises of a store at the same hour on most days of recordings, as [[planned]] of the estate.

    Exit status 1 if nothing recurs.

    Args:
        recordings: Recordings of several days: .ndjson, .ndjson.zst or .arrow.
        estate: Estate file (TOML).
    """
    from twin.planning.proof import find_plans

    loaded_estate = open_estate(estate)
    with show_progress("find") as advance:
        proposals = find_plans(recordings, loaded_estate, advance)
    _print_tables(own.text for own in proposals)
    print_line(f"{as_count(len(proposals), 'plan')} proposed, of rises at the same hour on most days")
    return None if proposals else 1


@plan.command(name="import")
def import_(calendar: InputFile, /, *, estate: EstateFile, kafka: KafkaOptions | None = None) -> int | None:
    """Announce the planned work of an iCalendar file, or print it as [[planned]] of the estate.

    Exit status 1 if it has none. What each property means: docs/planned-work.md.

    Args:
        calendar: iCalendar file, such as jobs.ics.
        estate: Estate file (TOML).
        kafka: Kafka connection. Without it the text for the estate is printed.
    """
    loaded_estate = open_estate(estate)
    plans, left_out = read_calendar(calendar, loaded_estate, time.time_ns() // 1000)
    if left_out:
        print_warnings([f"{calendar}: left out: {left_out}"])
    if kafka is None:
        _print_tables(planned_text(store, content) for store, content in plans if "cancelled" not in content)
    elif plans:
        _send(loaded_estate, kafka, plans)
    cancelled = sum("cancelled" in content for _, content in plans)
    ended = f", {cancelled} cancelled" if cancelled else ""
    print_line(f"{as_count(len(plans) - cancelled, 'plan')} of {calendar.name}{ended}")
    return None if plans else 1


@plan.command(name="list")
def list_(*, estate: EstateFile, kafka: KafkaOptions, store: str | None = None, json: Flag = False) -> None:
    """List planned work of the next 24 hours, as in the last state records.

    Args:
        estate: Estate file (TOML).
        kafka: Kafka connection.
        store: List only that of this store, such as QSG1/APP1.
        json: Print JSON instead of text.
    """
    configure_logging(level="warning")
    loaded_estate = open_estate(estate)
    if store is not None:
        _check(loaded_estate, store)
    plans = [
        StorePlan(store=name, work=work)
        for name, state in sorted(read_last_states(kafka.client(), kafka.topics).items())
        if store in (None, name)
        for work in state.plans or ()
    ]
    emit(plans_document(plans), as_json=json)


def _print_tables(texts: Iterable[str]) -> None:
    """Print tables of the estate, with an empty line between two."""
    for number, text in enumerate(texts):
        print("\n".join(map(printable, [""] * (number > 0) + text.splitlines())))


def plans_document(plans: list[StorePlan]) -> Document:
    """Return the table of windows."""
    if not plans:
        return Document("Planned work", [Text("no work is planned in the next 24 hours")], plans)
    rows = [
        [
            own.store,
            own.work.id,
            own.work.queue or "",
            site_period(own.work.begins, own.work.ends),
            "" if own.work.announced is None else f"{own.work.announced:,}",
            "" if own.work.seen is None else f"{own.work.seen:,}",
            "away" if own.work.getters_away else "",
            own.work.status,
        ]
        for own in plans
    ]
    headings = ("store", "plan", "queue", "window", "announced", "seen", "getters", "status")
    return Document("Planned work", [Table(headings, rows, {"announced", "seen"})], plans)


def _check(estate: Estate, store: str) -> None:
    """Check that an estate has a store. UsageError: it has not."""
    if store not in estate.stores:
        raise UsageError(f"{store}: the estate has no such store{known_hint(store, estate.stores)}")


def plan_event(estate: Estate, store: str, content: Mapping[str, Any], now: int) -> bytes:
    """Return a PLAN event as JSON. The content is that of the event: a plan, or its end. UsageError: no such store, the
    plan is wrong, or none of its windows is still ahead.
    """
    _check(estate, store)
    try:
        plan = read_plan(content, estate.stores[store])
    except EstateError as error:
        raise UsageError(f"plan of {store}: {error}") from None
    if isinstance(plan, Plan) and not plan.rrule and plan.end is not None and plan.end <= now:
        raise UsageError(f"plan of {store}: until = {as_text(plan.end)} has passed; expected: a window ahead")
    qmgr = next(qmgr for qmgr, name in estate.store_routes if name == store)
    return msgspec.json.encode({"time": now, "qmgr": qmgr, "op": "PLAN", "store": store, "plan": content})


def _send(estate: Estate, kafka: KafkaOptions, planned: Sequence[tuple[str, Mapping[str, Any]]]) -> None:
    """Write PLAN events to the events topic. UsageError: a plan is wrong, or the user may not write."""
    configure_logging(level="warning")
    now, topics = time.time_ns() // 1000, kafka.topics
    records = [Record(store.encode(), plan_event(estate, store, content, now), JSON, 1) for store, content in planned]
    with Sender(kafka.client(), topics, PublishResult(), linger_ms=5, create_topics=False) as sender:
        for record in records:
            sender.send(record)
