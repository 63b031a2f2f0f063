"""`python -m tests.tools.score.planned`: what planned work is worth, with the figures of docs/planned-work.md.

Each night a job puts to a queue that nobody gets from until it ends, in a store that other traffic passes through. The
same night is played without a plan and with one: jobs that fit, jobs that fill the store, and plans that are wrong,
because the job is not run and something else fills the store, or is twice its size, or an hour late. `--write` writes
the table into the page.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np

from tests.tools.score.people import ROOT, write_between
from twin.alerts.episodes import Alert
from twin.conditions import INFO, OPENED, Condition
from twin.estate import Estate, load_estate
from twin.events import Decoder
from twin.playback.replays import Player, play
from twin.playback.samples import Alerts
from twin.simulation.scenario import START
from twin.units import as_text

BEGIN, END = "<!-- planned: begin -->", "<!-- planned: end -->"
PAGE = ROOT / "docs" / "planned-work.md"
COMMAND = "python -m tests.tools.score.planned --write"
NIGHTS = 12  # of each kind
ENTRIES = 16_700  # about that many messages of LENGTH fill the store
LENGTH = 800
SIZE = "36M"
_MINUTE = 60_000_000  # microseconds
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


def events(night: Night, *, is_planned: bool) -> Iterator[dict[str, Any]]:
    """Yield the events of a night."""
    base = {"qmgr": "QM01"}
    if is_planned:
        window = {"from": START + _QUIET * _MINUTE, "until": START + (_QUIET + night.lasts) * _MINUTE}
        times = {name: as_text(time) for name, time in window.items()}
        plan = {"id": "JOB", "queue": "BATCH", "messages": night.announced, "length": LENGTH, **times}
        yield base | {"time": START, "op": "PLAN", "store": "QSG1/APP1", "plan": plan}
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
        time = START + (step + 1) * _STEP
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
        pairs = [(before, after) for before, after in measured[kind] if before.page is not None]
        later = [np.inf if after.page is None else after.page - (before.page or 0.0) for before, after in pairs]
        late = sum(minutes > _LATER for minutes in later)
        latest = max(later, default=0.0)
        rows.append(
            f"| {len(pairs)} paged without a plan, the plan wrong: {kind} | | {late} more than {_LATER} min later,"
            f" at most {latest:.0f} min |"
        )
    return "\n".join(rows) + f"\n\n`{COMMAND}` measures it.\n"


def _row(text: str, pairs: list[tuple[Played, Played]], holds: Any) -> str:
    return f"| {text} | {sum(holds(own) for own, _ in pairs)} | {sum(holds(own) for _, own in pairs)} |"


def main() -> int:
    """Measure, print and perhaps write."""
    parser = argparse.ArgumentParser(prog="python -m tests.tools.score.planned")
    parser.add_argument("--nights", type=int, default=NIGHTS, help="of each kind")
    parser.add_argument("--write", action="store_true", help="write the table into the page")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "estate.toml"
        path.write_text(_ESTATE, encoding="utf-8")
        estate = load_estate(path)
        measured = {}
        for kind in KINDS:
            measured[kind] = measure(kind, arguments.nights, estate)
            sys.stderr.write(f"{kind}: {measured[kind]}\n")
            sys.stderr.flush()
    text = table(measured)
    sys.stdout.write(text)
    if arguments.write:
        write_between(PAGE, text, BEGIN, END)
    return 0


if __name__ == "__main__":
    sys.exit(main())
