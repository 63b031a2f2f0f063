"""The scorecard of `mqtwin score`: tables, JSON and pictures."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec
from rich.console import Console

from deploy.show.terminal import print_table
from twin.conditions import Resource
from twin.records import ForecastScores, HorizonScore, StateRecord
from twin.scoring import (
    METHODS,
    TWIN,
    Filling,
    PageCounts,
    PlayedRecording,
    ScoredRecording,
    summarise,
    summarise_pages,
)
from twin.scoring.chances import climatology_brier, skill
from twin.scoring.table import NOTHING, number, page_table, percent, span, table
from twin.units import as_text

_PIPE_WIDTH = 150  # characters per line if standard output is not a terminal
_ALL_STORES = "all"
_PROBABILITY_BINS = 5  # of equal width, as `ProbabilityBin` has them


def print_scorecard(recordings: Sequence[Path], scored: Sequence[ScoredRecording]) -> None:
    """Print what people get, the figures of the forecast, and one line per filling.

    Args:
        recordings: Paths of the recordings.
        scored: Scores of the recordings, in the same order.
    """
    console = Console()
    if not console.is_terminal:
        console = Console(width=_PIPE_WIDTH)
    console.print(page_table(summarise_pages(scored)))
    console.print(table("the forecast", summarise(scored)))
    lines = [
        f"{recording.name}: {_filling_text(filling)}; lead: "
        + ", ".join(f"{method} {span(lead)}" for method, lead in leads.items())
        for recording, score in zip(recordings, scored, strict=True)
        for filling, leads in _leads(score)
    ]
    for line in lines or ["no put was refused for want of room: every alarm is false"]:
        console.print(line, highlight=False, soft_wrap=True)


def _filling_text(filling: Filling) -> str:
    filler = f" by {filling.grown[0][0]} ({percent(filling.grown[0][1])})" if filling.grown else ""
    resource, time = f"{filling.store} {filling.resource}", as_text(filling.first)[:19] + "Z"
    reason = Resource.parse(filling.resource).reason
    return f"{resource} filled in {span(filling.seconds)}{filler}, first {reason} at {time}"


def _leads(scored: ScoredRecording) -> list[tuple[Filling, dict[str, float | None]]]:
    """Return each filling with the lead of each method in seconds, None where it gave no alarm in time."""
    leads = []
    for store, judged in enumerate(scored.judged[TWIN]):
        for i, warned in enumerate(judged.warned):
            by_method = {method: scored.judged[method][store].warned[i].lead for method in METHODS}
            leads.append((warned.filling, by_method))
    return leads


def print_live_scores(states: Iterable[StateRecord], *, as_json: bool) -> None:
    """Print what became of the forecasts and pages of stores: docs/state.md, "Fields of forecast scores".

    Args:
        states: Their last state records.
        as_json: True prints the scores by store as a JSON object.
    """
    by_store = {state.store: state.forecast_scores for state in states if state.forecast_scores is not None}
    if as_json:
        print(msgspec.json.encode(by_store).decode())
        return
    if not by_store:
        print("no forecast and no page of any store is settled yet")
        return
    horizons = sorted({score.horizon_s for scores in by_store.values() for score in scores.horizons})
    spans = [span(seconds) for seconds in horizons]
    brier = [f"{text}: Brier (skill)" for text in spans]
    pages = ("right pages", "late", "false")
    lines = [_live_line(store, [scores], horizons) for store, scores in by_store.items()]
    if len(by_store) > 1:
        lines.append(_live_line(_ALL_STORES, list(by_store.values()), horizons))
    headings = ("store", "days", "looks", *brier, "in p10..p90", *pages)
    print_table(headings, lines, set(headings[1:]), {"days", "looks"})
    print()
    calibration = _calibration(list(by_store.values()), horizons)
    print_table(
        ("probability", *(f"full within {text}" for text in spans)),
        calibration,
        {f"full within {text}" for text in spans},
    )


def _live_line(name: str, stores: Sequence[ForecastScores], horizons: Sequence[int]) -> list[str]:
    """Return the row of a store, or of all of them together."""
    looks = max((sum(own.looks for own in _of_horizon(stores, seconds)) for seconds in horizons), default=0)
    intervals, inside = sum(own.intervals.count for own in stores), sum(own.intervals.inside for own in stores)
    covered = f"{percent(inside / intervals)} of {intervals:,}" if intervals else NOTHING
    counts = (sum(getattr(own.pages, outcome) for own in stores) for outcome in ("right", "late", "false"))
    return [
        name,
        str(max(own.days for own in stores)),
        f"{looks:,}",
        *(_brier(_of_horizon(stores, seconds)) for seconds in horizons),
        covered,
        *(f"{count:,}" for count in counts),
    ]


def _of_horizon(stores: Sequence[ForecastScores], seconds: int) -> list[HorizonScore]:
    return [score for own in stores for score in own.horizons if score.horizon_s == seconds]


def _brier(scores: Sequence[HorizonScore]) -> str:
    """Return the Brier score of looks, and its skill against the share of them that full followed."""
    looks = sum(score.looks for score in scores)
    if not looks:
        return NOTHING
    brier, share = sum(score.brier * score.looks for score in scores) / looks, sum(s.full for s in scores) / looks
    reference = climatology_brier(share)
    return f"{brier:.3f} ({number(float(skill(brier, reference)) if reference else None)})"


def _calibration(stores: Sequence[ForecastScores], horizons: Sequence[int]) -> list[list[str]]:
    """Return a row per fifth of the probability: how many looks said so, and the share of them that full followed."""
    lines = []
    for low in range(_PROBABILITY_BINS):
        cells = []
        for seconds in horizons:
            bins = [
                own
                for score in _of_horizon(stores, seconds)
                for own in score.bins
                if min(_PROBABILITY_BINS - 1, int(own.predicted * _PROBABILITY_BINS)) == low
            ]
            looks = sum(own.looks for own in bins)
            cells.append(f"{percent(sum(own.full for own in bins) / looks)} of {looks:,}" if looks else NOTHING)
        ends = (100 * low // _PROBABILITY_BINS, 100 * (low + 1) // _PROBABILITY_BINS)
        lines.append([f"{ends[0]} to {ends[1]} %", *cells])
    return lines


class FillerShare(msgspec.Struct, frozen=True):
    """A queue that filled, and its share of the growth, 0 to 1."""

    queue: str
    share: float


class FillingRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A filling, with the lead of each method in seconds, None where it gave no alarm in time."""

    recording: str
    store: str
    resource: str
    onset: str
    first: str
    last: str
    refused: int
    fillers: list[FillerShare]
    lead_s: dict[str, float | None]


class Scorecard(msgspec.Struct, frozen=True):
    """The scorecard as `mqtwin score --json` prints it; docs/scorecard.md describes the measures of a method."""

    fillings: list[FillingRecord]
    pages: dict[str, PageCounts]
    methods: dict[str, dict[str, Any]]


def scorecard_of(recordings: Sequence[Path], scored: Sequence[ScoredRecording]) -> Scorecard:
    """Return the scorecard.

    Args:
        recordings: Paths of the recordings.
        scored: Scores of the recordings, in the same order.
    """
    return Scorecard(
        fillings=[
            FillingRecord(
                recording=str(recording),
                store=filling.store,
                resource=filling.resource,
                onset=as_text(filling.onset),
                first=as_text(filling.first),
                last=as_text(filling.last),
                refused=filling.refused,
                fillers=[FillerShare(queue, round(share, 4)) for queue, share in filling.grown],
                lead_s=leads,
            )
            for recording, score in zip(recordings, scored, strict=True)
            for filling, leads in _leads(score)
        ],
        pages=summarise_pages(scored),
        methods={name: measures.as_json() for name, measures in summarise(scored).items()},
    )


def draw_stores(folder: Path, recording: Path, played: PlayedRecording, scored: ScoredRecording) -> None:
    """Draw usage, forecasts and alerts of each store of a recording, one SVG file per store."""
    from twin.playback.pictures import save
    from twin.scoring.pictures import story

    stem = recording.name.partition(".")[0]
    for name, series in played.series.items():
        statements = {method: scored.outputs[method][name] for method in METHODS}
        figure = story(series, scored.fillings[name], statements, f"{name}, {recording.name}")
        save(figure, folder / f"{stem}-{name.replace('/', '-')}.svg")


def draw_summary(folder: Path, scored: Sequence[ScoredRecording]) -> None:
    """Draw lead times and calibration of all recordings: leads.svg and calibration.svg."""
    from twin.playback.pictures import save
    from twin.scoring.pictures import calibration, leads

    measures = summarise(scored)
    save(leads({name: _all_leads(scored, name) for name in METHODS}, measures), folder / "leads.svg")
    save(calibration(measures[TWIN]), folder / "calibration.svg")


def _all_leads(scored: Sequence[ScoredRecording], method: str) -> list[float | None]:
    return [warned.lead for score in scored for judged in score.judged[method] for warned in judged.warned]
