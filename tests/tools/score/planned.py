"""`python -m tests.tools.score.planned`: the worth of plans and of words on pages, with the figures of two pages.

Each night a job puts to a queue that nobody gets from until it ends, in a store that other traffic passes through. The
same night is played without a plan and with one: jobs that fit, jobs that fill the store, and wrong plans (not run, and
something else fills the store; twice its size; an hour late). With `--words` the nights of a store follow one another,
so that it learns how rises end. After a page somebody says whether the store was full, one time in ten the wrong way
round, until ten words are given; the nights after that are compared with those of a store without words. With `--month`
one job comes every night for a month, some nights without an end, and one recurring plan announces it. `--write` writes
a table into its page.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np

from tests.tools.score.people import ROOT, write_between
from twin.alerts.episodes import Alert
from twin.base.conditions import INFO, OPENED, Condition
from twin.base.units import as_text
from twin.estate import Estate, load_estate
from twin.events import Decoder
from twin.playback.replays import Player, play
from twin.playback.samples import Alerts
from twin.records import USEFUL, USELESS, opened_of
from twin.simulation.scenario import START

BEGIN, END = "<!-- planned: begin -->", "<!-- planned: end -->"
PAGE = ROOT / "docs" / "planned-work.md"
COMMAND = "python -m tests.tools.score.planned --write"
WORDS_BEGIN, WORDS_END = "<!-- words: begin -->", "<!-- words: end -->"
WORDS_PAGE = ROOT / "docs" / "incidents.md"
WORDS_COMMAND = "python -m tests.tools.score.planned --words --write"
MONTH_BEGIN, MONTH_END = "<!-- planned-month: begin -->", "<!-- planned-month: end -->"
MONTH_COMMAND = "python -m tests.tools.score.planned --month --write"
NIGHTS_OF_MONTH = 30
STORES = 10  # of which each has nights that follow one another
NIGHTS_OF_STORE = 60
_WORDS = 10  # that are said of a store's pages
_WRONG = 0.1  # share of them
_FILLINGS = 0.15  # share of the nights
NIGHTS = 40  # of each kind
ENTRIES = 16_700  # about that many messages of LENGTH fill the store
LENGTH = 800
SIZE = "36M"
_MINUTE = 60_000_000  # microseconds
_DAY = 1_440 * _MINUTE
_STEP = 20_000_000
_QUIET = 70  # minutes before the job
_AFTER = 60
_IN_TIME = 10  # minutes before the store is full
_LATER = 2  # minutes by which a page may be later with a wrong plan
_ESTATE = f"""schema = 1
[queue_sharing_group.QSG1]
queue_managers = ["QM01"]
[structure."QSG1/APP1"]
cf_level = 4
offload = "NONE"
size = "{SIZE}"
[queue."QSG1/ORDERS"]
structure = "APP1"
[queue."QSG1/BATCH"]
structure = "APP1"
"""
KINDS = ("fits", "fills", "not run", "twice the size", "an hour late")
_STORY, _MONTH = len(KINDS), len(KINDS) + 1  # seeds of their own


class Night(NamedTuple):
    """A night.

    Attributes:
        kind: one of KINDS.
        usual: messages that pass through in a step.
        announced: messages that the plan has.
        lasts: minutes of the job, as planned.
        pace: factors on the job's steps, around 1.
    """

    kind: str
    usual: int
    announced: int
    lasts: int
    pace: np.ndarray[Any, np.dtype[np.float64]]


@dataclass(frozen=True, slots=True)
class Played:
    """A night that was played.

    Attributes:
        page: minute of the first page; None: nobody is paged.
        full: minute at which the store is full; None: it is not.
        unfit: True if it was said before the job that it does not fit.
    """

    page: float | None
    full: float | None
    unfit: bool

    @property
    def is_in_time(self) -> bool:
        """True if somebody is paged in time before the store is full."""
        return self.full is not None and self.page is not None and self.page <= self.full - _IN_TIME


def draw(kind: str, number: int) -> Night:
    """Return a night by chance; the same for the same number."""
    rng = np.random.default_rng((KINDS.index(kind), number))
    share = rng.uniform(1.25, 1.9) if kind == "fills" else rng.uniform(0.62, 0.85) if kind == "twice the size" else None
    share = rng.uniform(0.35, 0.92) if share is None else share
    lasts = int(rng.integers(45, 150))
    pace = np.repeat(rng.lognormal(0.0, 0.25, 200), 9)
    return Night(kind, int(rng.integers(5, 60)), int(share * ENTRIES), lasts, pace)


def events(night: Night, *, is_planned: bool, start: int = START) -> Iterator[dict[str, Any]]:
    """Yield the events of a night. start: its beginning, microseconds."""
    base = {"qmgr": "QM01"}
    if is_planned:
        window = {"from": start + _QUIET * _MINUTE, "until": start + (_QUIET + night.lasts) * _MINUTE}
        times = {name: as_text(time) for name, time in window.items()}
        plan = {"id": "JOB", "queue": "BATCH", "messages": night.announced, "length": LENGTH, **times}
        yield base | {"time": start, "op": "PLAN", "store": "QSG1/APP1", "plan": plan}
    steps = night.lasts * 3
    puts = np.rint(night.announced * night.pace[:steps] / night.pace[:steps].sum()).astype(int)
    if night.kind == "twice the size":
        puts = np.repeat(puts, 2)
    begins = 3 * (_QUIET + (60 if night.kind == "an hour late" else 0))
    queue = "BATCH"
    if night.kind == "not run":
        queue, puts = "ORDERS", np.full(3 * 240, max(1, round(ENTRIES / (3 * 150))))
    ends = begins + len(puts)
    held = 0
    for step in range(ends + 3 * _AFTER):
        time = start + (step + 1) * _STEP
        job = int(puts[step - begins]) if begins <= step < ends else 0
        flows = {"ORDERS": (night.usual, night.usual)}
        if job:
            flows[queue] = (job + (night.usual if queue == "ORDERS" else 0), night.usual if queue == "ORDERS" else 0)
        held += job if queue == "BATCH" else 0
        if step >= ends and queue == "BATCH" and held:
            got = min(held, max(200, held // 20))
            flows["BATCH"], held = (0, got), held - got
        for name, (put, got) in flows.items():
            if put:
                yield base | {"time": time, "op": "PUT", "queue": name, "count": put, "length": LENGTH}
            if got:
                yield base | {"time": time + 1, "op": "GET", "queue": name, "count": got}


def play_night(night: Night, estate: Estate, *, is_planned: bool) -> Played:
    """Return what becomes of a night."""
    alerts = Alerts()
    lines = [msgspec.json.encode(event) for event in events(night, is_planned=is_planned)]
    play([Decoder(estate).json(lines)], estate, alerts, player=Player(estate, demands=True))
    job = START + _QUIET * _MINUTE
    return Played(
        _minute(alerts.alerts, lambda alert: alert.severity != INFO),
        _minute(alerts.alerts, lambda alert: alert.condition == Condition.FULL and alert.change == OPENED),
        any(alert.condition == Condition.PLAN_DOES_NOT_FIT and alert.time < job for alert in alerts.alerts),
    )


def _minute(alerts: list[Alert], is_one: Any) -> float | None:
    return next(((alert.time - START) / _MINUTE for alert in alerts if is_one(alert)), None)


# --- words ------------------------------------------------------------------------------------------------------------


class Heard(NamedTuple):
    """A night of a store whose nights follow one another, as it was played.

    Attributes:
        page: minute of the first page of the forecast; None: nobody is called.
        full: minute at which the store is full; None: it is not.
        words: said of the store's pages before the night.
    """

    page: float | None
    full: float | None
    words: int

    @property
    def lead(self) -> float | None:
        """Minutes from the page until the store is full; None: it is not full, or nobody is called before."""
        return None if self.full is None or self.page is None or self.page > self.full else self.full - self.page


def draw_story(number: int, nights: int) -> list[Night]:
    """Return the nights of a store: harmless jobs of all paces that take much of it, and some that fill it."""
    rng = np.random.default_rng((_STORY, number))
    story = []
    for _ in range(nights):
        fills = rng.random() < _FILLINGS
        share = rng.uniform(1.15, 1.6) if fills else rng.uniform(0.6, 0.95)
        pace = np.repeat(rng.lognormal(0.0, 0.3, 200), 9)
        usual, lasts = int(rng.integers(5, 60)), int(rng.integers(30, 150))
        story.append(Night("fills" if fills else "fits", usual, int(share * ENTRIES), lasts, pace))
    return story


def play_story(number: int, story: Sequence[Night], estate: Estate, *, is_answered: bool) -> list[Heard]:
    """Return what becomes of the nights of a store. is_answered: people say what its pages were worth."""
    player, decoder, rng = Player(estate, demands=True), Decoder(estate), np.random.default_rng((_STORY, number, 1))
    heard, words, start = [], 0, START
    for night in story:
        own, page = _hear(player, decoder, night, start, words)
        heard.append(own)
        is_wrong = rng.random() < _WRONG
        start += (_QUIET + night.lasts + 2 * _AFTER) * _MINUTE
        if is_answered and page is not None and words < _WORDS:
            word = USEFUL if (own.full is not None) is not is_wrong else USELESS
            attributes = {"opened": opened_of(page.alert_id), "word": word}
            note = {
                "time": start - _MINUTE,
                "qmgr": "QM01",
                "op": "NOTE",
                "store": "QSG1/APP1",
                "attributes": attributes,
            }
            player.feed(decoder.json([msgspec.json.encode(note)]))
            words += 1
    return heard


def _hear(player: Player, decoder: Decoder, night: Night, start: int, words: int = 0) -> tuple[Heard, Alert | None]:
    """Play a night of a store and return what becomes of it, and its first page of the forecast."""
    lines = [msgspec.json.encode(event) for event in events(night, is_planned=False, start=start)]
    alerts = player.feed(decoder.json(lines))
    page = next((own for own in alerts if own.condition == Condition.FULL_FORECAST and own.severity != INFO), None)
    full = next((own for own in alerts if own.condition == Condition.FULL and own.change == OPENED), None)
    minutes = [None if own is None else (own.time - start) / _MINUTE for own in (page, full)]
    return Heard(minutes[0], minutes[1], words), page


def words_table(stores: Sequence[tuple[list[Heard], list[Heard]]]) -> str:
    """Return the figures as Markdown. stores: (without words, with them) of each store, night by night."""
    pairs = [pair for own in stores for pair in zip(*own, strict=True) if pair[1].words == _WORDS]
    calm = [pair for pair in pairs if pair[0].full is None]
    filled = [pair for pair in pairs if pair[0].full is not None]
    leads = [(before.lead, after.lead) for before, after in filled]
    both = [(before, after) for before, after in leads if before is not None and after is not None]
    means = [float(np.mean(column)) if both else 0.0 for column in zip(*both, strict=True)] or [0.0, 0.0]
    unheard = sum(before is not None and after is None for before, after in leads)
    answered = sum(own[1][-1].words == _WORDS for own in stores)
    rows = [
        f"| {answered} stores, nights after the tenth word | without words | with them |",
        "| --- | --- | --- |",
        _row(f"{len(calm)} harmless nights: needless calls", calm, lambda night: night.page is not None),
        _row(f"{len(filled)} fillings: called before full", filled, lambda night: night.lead is not None),
        f"| minutes from the call until full, mean | {means[0]:.0f} | {means[1]:.0f} |",
        f"| fillings that nobody hears of any more | | {unheard} |",
    ]
    return "\n".join(rows) + f"\n\n`{WORDS_COMMAND}` measures it.\n"


# --- a month ----------------------------------------------------------------------------------------------------------


def draw_month(number: int, nights: int) -> tuple[int, list[Night]]:
    """Return the messages that a store's job has announced, and its nights: about as many, on some without an end."""
    rng = np.random.default_rng((_MONTH, number))
    announced, lasts = int(rng.uniform(0.5, 0.85) * ENTRIES), int(rng.integers(45, 150))
    month = []
    for _ in range(nights):
        fills = rng.random() < _FILLINGS / 3
        size = rng.uniform(1.25, 1.9) * ENTRIES if fills else announced * min(1.1, rng.lognormal(0.0, 0.05))
        pace = np.repeat(rng.lognormal(0.0, 0.25, 400), 9)
        stretched = round(lasts * max(1.0, size / announced))
        month.append(Night("fills" if fills else "fits", int(rng.integers(5, 60)), int(size), stretched, pace))
    return announced, month


def play_month(announced: int, month: Sequence[Night], estate: Estate, *, is_planned: bool) -> list[Heard]:
    """Return what becomes of the nights of a month. is_planned: a recurring plan announces the job."""
    player, decoder = Player(estate, demands=True), Decoder(estate)
    if is_planned:
        lasts = min(night.lasts for night in month)
        plan = {
            "id": "JOB",
            "queue": "BATCH",
            "messages": announced,
            "length": LENGTH,
            "from": as_text(START + _QUIET * _MINUTE),
            "rrule": "FREQ=DAILY",
            "duration_s": 60 * lasts,
        }
        event = {"qmgr": "QM01", "time": START, "op": "PLAN", "store": "QSG1/APP1", "plan": plan}
        player.feed(decoder.json([msgspec.json.encode(event)]))
    return [_hear(player, decoder, night, START + day * _DAY)[0] for day, night in enumerate(month)]


def month_table(stores: Sequence[tuple[list[Heard], list[Heard]]]) -> str:
    """Return the figures as Markdown. stores: (without a plan, with one) of each store, night by night."""
    pairs = [pair for own in stores for pair in zip(*own, strict=True)]
    calm = [pair for pair in pairs if pair[0].full is None]
    filled = [pair for pair in pairs if pair[0].full is not None]
    rows = [
        f"| {len(stores)} stores, {NIGHTS_OF_MONTH} nights each of one job | without a plan | with it |",
        "| --- | --- | --- |",
        _row(f"{len(calm)} nights as planned: nights with a page", calm, lambda night: night.page is not None),
        _row(
            f"{len(filled)} nights on which it does not end: paged {_IN_TIME} min before full",
            filled,
            lambda night: (night.lead or 0.0) >= _IN_TIME,
        ),
    ]
    leads = [[night.lead or 0.0 for night in own] for own in zip(*filled, strict=True)]
    medians = [f"{np.median(own):.0f} min" for own in leads] or ["-", "-"]
    rows.append(f"| lead of their pages, p50 | {medians[0]} | {medians[1]} |")
    return "\n".join(rows) + f"\n\n`{MONTH_COMMAND}` measures it.\n"


# --- the command ------------------------------------------------------------------------------------------------------


def measure(kind: str, nights: int, estate: Estate) -> list[tuple[Played, Played]]:
    """Return the nights of a kind, each (without a plan, with one)."""
    drawn = [draw(kind, number) for number in range(nights)]
    return [
        (play_night(night, estate, is_planned=False), play_night(night, estate, is_planned=True)) for night in drawn
    ]


def table(measured: Mapping[str, list[tuple[Played, Played]]]) -> str:
    """Return the figures as Markdown."""
    rows = ["| nights | without a plan | with it |", "| --- | --- | --- |"]
    fits, fills = measured["fits"], measured["fills"]
    rows += [
        _row(f"{len(fits)} jobs that fit: nights with a page", fits, lambda night: night.page is not None),
        _row("said before they begin that they do not fit", fits, lambda night: night.unfit),
        _row(
            f"{len(fills)} jobs that fill the store: paged {_IN_TIME} min before full",
            fills,
            lambda night: night.is_in_time,
        ),
        _row("said before they begin that they do not fit", fills, lambda night: night.unfit),
    ]
    for kind in KINDS[2:]:
        nights = measured[kind]
        paged = [(before.page, after.page) for before, after in nights if before.page is not None]
        later = [np.inf if after is None else after - before for before, after in paged]
        in_time = [sum(night.is_in_time for night in own) for own in zip(*nights, strict=True)]
        filled = sum(before.full is not None for before, _ in nights)
        rows.append(
            f"| {filled} fillings beside a wrong plan, {kind}: paged {_IN_TIME} min before full"
            f" | {in_time[0]} | {in_time[1]};"
            f" {sum(minutes > _LATER for minutes in later)} of {len(paged)} pages more than {_LATER} min later,"
            f" at most {max(later, default=0.0):.0f} min |"
        )
    return "\n".join(rows) + f"\n\n`{COMMAND}` measures it.\n"


def _row(text: str, pairs: Sequence[tuple[Any, Any]], holds: Callable[[Any], bool]) -> str:
    return f"| {text} | {sum(holds(own) for own, _ in pairs)} | {sum(holds(own) for _, own in pairs)} |"


def main() -> int:
    """Measure, print and perhaps write."""
    parser = argparse.ArgumentParser(prog="python -m tests.tools.score.planned")
    parser.add_argument("--nights", type=int, default=NIGHTS, help="of each kind")
    parser.add_argument("--words", action="store_true", help="measure words instead of plans")
    parser.add_argument("--month", action="store_true", help="measure a month with a recurring plan instead")
    parser.add_argument("--stores", type=int, default=STORES, help="of --words and --month")
    parser.add_argument("--write", action="store_true", help="write the table into its page")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "estate.toml"
        path.write_text(_ESTATE, encoding="utf-8")
        estate = load_estate(path)
        if arguments.words:
            return _measure_words(arguments.stores, estate, writes=arguments.write)
        if arguments.month:
            return _measure_month(arguments.stores, estate, writes=arguments.write)
        measured = {}
        for kind in KINDS:
            measured[kind] = measure(kind, arguments.nights, estate)
            sys.stderr.write(f"{kind}: {measured[kind]}\n")
            sys.stderr.flush()
    text = table(measured)
    sys.stdout.write(text)
    if arguments.write:
        write_between(PAGE, f"{BEGIN}\n\n{text}\n{END}", BEGIN, END)
    return 0


def _measure_words(stores: int, estate: Estate, *, writes: bool) -> int:
    """Measure words, print and perhaps write."""
    heard = []
    for number in range(stores):
        story = draw_story(number, NIGHTS_OF_STORE)
        before = play_story(number, story, estate, is_answered=False)
        heard.append((before, play_story(number, story, estate, is_answered=True)))
        sys.stderr.write(f"{number}: {words_table(heard[-1:])}\n")
        sys.stderr.flush()
    text = words_table(heard)
    sys.stdout.write(text)
    if writes:
        write_between(WORDS_PAGE, f"{WORDS_BEGIN}\n\n{text}\n{WORDS_END}", WORDS_BEGIN, WORDS_END)
    return 0


def _measure_month(stores: int, estate: Estate, *, writes: bool) -> int:
    """Measure months, print and perhaps write."""
    heard = []
    for number in range(stores):
        announced, month = draw_month(number, NIGHTS_OF_MONTH)
        without, planned = (play_month(announced, month, estate, is_planned=flag) for flag in (False, True))
        heard.append((without, planned))
        sys.stderr.write(f"{number}: {month_table(heard[-1:])}\n")
        sys.stderr.flush()
    text = month_table(heard)
    sys.stdout.write(text)
    if writes:
        write_between(PAGE, f"{MONTH_BEGIN}\n\n{text}\n{MONTH_END}", MONTH_BEGIN, MONTH_END)
    return 0


if __name__ == "__main__":
    sys.exit(main())
