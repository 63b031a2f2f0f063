"""`python -m docs.make_demo`: the night of `mqtwin demo --recorded`, in the package of the console, and docs/demo.html.

The three structures of the live demo, played once: what the console shows of each minute, usage over the night, answers
to what-if at some moments with one change each, and what would have helped. It takes some minutes. With `page` it
writes the page alone, of that night and the files of the console as they are.
"""

from __future__ import annotations

import gzip
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from deploy.console.answers import WhatIfAnswer
from deploy.console.past import PastTwins
from deploy.console.recorded import NIGHT, Line, Night, Screen, recorded_page, whatif_key
from kernels.clock import SECOND
from twin.base.conditions import ELEMENTS, ENTRIES, FULL, Condition
from twin.base.errors import MqtwinError
from twin.base.units import as_local
from twin.estate import load_estate
from twin.playback.timeline import Timeline
from twin.records import AlertRecord, Change, Incidents, read_alert_record
from twin.simulation import SideBySide, side_by_side_estate_text, simulate

PAGE = Path(__file__).with_name("demo.html")
SEED = 1
STEP_S = 120
BEFORE_S = 20 * 60  # of play, before the first page about the structure that fills first
ASKED_BEFORE_S = (2700, 1200)  # before the first put that fails: moments of questions
TRAFFIC = {"puts": (0.5, 2.0), "gets": (0.5, 2.0), "lengths": (0.5,)}


def main() -> None:
    """Write the night, unless the page alone is asked for, and the page."""
    if sys.argv[1:] != ["page"]:
        _write_night()
    PAGE.write_text(recorded_page(), encoding="utf-8")


def _write_night() -> None:
    with tempfile.TemporaryDirectory() as folder:
        described, recording = Path(folder) / "estate.toml", Path(folder) / "night.arrow"
        described.write_text(side_by_side_estate_text(), encoding="utf-8")
        estate = load_estate(described)
        simulate(SideBySide(), estate, recording, seed=SEED)
        timeline = Timeline(recording, estate)
        content = msgspec.json.encode(_night(timeline, PastTwins(timeline)))
    NIGHT.write_bytes(gzip.compress(content, mtime=0))
    print(f"{NIGHT}: {NIGHT.stat().st_size:,} bytes, {len(content):,} unpacked")


def _night(timeline: Timeline, past: PastTwins) -> Night:
    records = [(alert.time, read_alert_record(alert.record())) for alert in timeline.alerts]
    first_full, store = min((time, own.data.store) for time, own in records if own.data.severity == FULL)
    page = min(mark.time for mark in past.moments.marks if mark.store == store)
    times = [
        time
        for place, time in enumerate(past.moments.times)
        if place % (STEP_S * len(past.moments.times) // _span_s(past)) == 0
    ]
    parts: dict[bytes, int] = {}
    begin = max(time for time in times if time <= page - BEFORE_S)
    moments = msgspec.to_builtins(past.moments) | {
        "name": "of a night",
        "times": times,
        "first": begin,
        "plays": True,
    }
    asked = [max(time for time in times if time <= first_full / SECOND - before) for before in ASKED_BEFORE_S]
    return Night(
        moments=moments,
        screens=[_moment(past, time, parts) for time in times],
        parts=[msgspec.Raw(part) for part in parts],
        history={name: past.history(name) for name in sorted(timeline.estate.stores)},
        asked={store: asked},
        what_if=dict(_answers(past, store, asked)),
        advice={whatif_key(store, time): past.advise({"store": store, "time": time}) for time in asked},
        lines=_lines(timeline, records),
    )


def _span_s(past: PastTwins) -> int:
    return round(past.moments.times[-1] - past.moments.times[0])


def _moment(past: PastTwins, time: float, parts: dict[bytes, int]) -> Screen:
    """Return what the page shows of a moment; stores and incidents as places in the parts, which most moments share."""
    extra = {"clients": 1, "what_if": True, "recording": "of a night", "has_past": True, "takes_notes": False}
    content = msgspec.json.decode(past.model_at(time).changes(0, extra)[1], type=dict[str, msgspec.Raw])
    places = {
        name: [
            parts.setdefault(bytes(part), len(parts))
            for part in msgspec.json.decode(content[name], type=list[msgspec.Raw])
        ]
        for name in ("stores", "incidents")
    }
    return Screen(meta=content["meta"], letters=content.get("letters", msgspec.Raw(b"null")), **places)


def _answers(past: PastTwins, store: str, times: list[float]) -> Iterator[tuple[str, WhatIfAnswer]]:
    """Yield the answers to what-if with one change each: factors of traffic, settings over their sliders."""
    for time in times:
        unchanged = past.what_if({"store": store, "time": time})
        yield whatif_key(store, time), unchanged
        questions: list[tuple[str, float, dict[str, Any]]] = [
            (name, factor, {"traffic": {name: factor}}) for name, factors in TRAFFIC.items() for factor in factors
        ]
        for slider in unchanged.attributes:
            for part in (0.0, 0.5, 1.0):
                value = slider.low + part * (slider.high - slider.low)
                value = slider.low + slider.step * round((value - slider.low) / slider.step)
                questions.append((slider.name, value, {"set": {slider.name: value * slider.scale}}))
        for name, value, change in questions:
            try:
                yield whatif_key(store, time, name, value), past.what_if({"store": store, "time": time} | change)
            except MqtwinError:  # a value that the store's rules do not allow has no answer
                continue


def _lines(timeline: Timeline, records: list[tuple[int, AlertRecord]]) -> list[Line]:
    """Return what is said of each store that fills: the twin's page, FULLTHRESHOLD, the first put that fails."""
    incidents, lines = Incidents(), []
    pages: dict[str, list[tuple[int, str]]] = {}
    for time, record in records:
        for change in incidents.take(record):
            if change.is_notice and change.change not in (Change.OVER, Change.RECOVERED):
                pages.setdefault(change.incident.root.data.store, []).append((time, change.incident.root.data.cause))
    for store, full in sorted(
        {own.data.store: time for time, own in reversed(records) if own.data.severity == FULL}.items()
    ):
        time, cause = min(own for own in pages[store] if own[0] > full - 3600 * SECOND)
        lines.append(_line(timeline, time, f"mqtwin pages, {_minutes(full - time)} before: {cause}"))
        passed = [own for own, record in records if _is_threshold(record, store) and full - 3600 * SECOND < own < full]
        threshold = f"FULLTHRESHOLD({timeline.estate.stores[store].full_threshold}) of {store}"
        if passed:
            lines.append(_line(timeline, passed[0], f"{threshold} is passed, {_minutes(full - passed[0])} before"))
        else:
            lines.append(
                _line(
                    timeline,
                    full - SECOND,
                    f"{threshold} has said nothing: it watches entries and elements, not data sets",
                )
            )
        lines.append(_line(timeline, full, f"the first put to {store} is refused with 2192"))
    return sorted(lines, key=lambda line: line.time)


def _is_threshold(record: AlertRecord, store: str) -> bool:
    data = record.data
    pools = {str(ENTRIES), str(ELEMENTS)}
    return (
        data.store == store
        and data.condition == Condition.THRESHOLD
        and record.change == "opened"
        and data.resource in pools
    )


def _line(timeline: Timeline, time: int, text: str) -> Line:
    return Line(time=time / SECOND, text=f"{as_local(time, timeline.estate.site.clock)}  {text}")


def _minutes(span: int) -> str:
    return f"{round(span / SECOND / 60)} min"


if __name__ == "__main__":
    main()
