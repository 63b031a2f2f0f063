"""`python -m tests.tools.score.weeks --loads FOLDER`: how good the long forecast is on months of stores.

Ten kinds of store in turn: the ordinary months of `tests.tools.score.month`, without a filling and with one; those
without one that leak 0.5, 1, 2, 4, 6 or 10 percentage points a day from some day on; readers that are away on weekends;
a reader whose limit the working days exceed, at a load that may grow. What is asked every six hours, until the store is
full, is whether it will be within 24 and 72 hours. `--write` writes the table into docs/forecast.md.
"""

from __future__ import annotations

import argparse
import datetime as dt
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from itertools import repeat
from pathlib import Path

import numpy as np

from tests.tools.score.cases import Split
from tests.tools.score.laws import Part, follow, hourly
from tests.tools.score.loads import SERIES
from tests.tools.score.month import DAY, DAYS, _troubled, draw_month, month_of, total_backlog
from tests.tools.score.people import ROOT, write_between
from tests.tools.score.table import markdown
from tests.tools.score.work import cores
from twin.forecast.outlook import seed_of
from twin.forecast.weeks import LEAST_KNOWN, look_weeks
from twin.simulation.scenario import START
from twin.state.arrays import Array

BEGIN, END = "<!-- weeks: begin -->", "<!-- weeks: end -->"
LEAKS = (0.5, 1.0, 2.0, 4.0, 6.0, 10.0)  # percentage points a day
KINDS = ("ordinary", "ordinary, fills once", *(f"leaks {pct:g} % a day" for pct in LEAKS), "weekends", "working days")
STORES = 120
AHEAD = (24, 72)  # hours
EVERY = 6  # hours between two looks
_HOUR = 60  # minutes
_NAMED_WITHIN = 3.0  # days
_DRAWN = 2_000  # samples of stores for an interval
_SEED = 0x7765656B

Rng = np.random.Generator


@dataclass(frozen=True, slots=True)
class Month:
    """A month of a store. levels: share in use by minute; full: first minute at which it is full, or None.

    leaks_from: minute from which it leaks; None: it does not.
    """

    kind: str
    levels: Array
    full: int | None
    leaks_from: int | None


@dataclass(frozen=True, slots=True)
class Looks:
    """Looks at a month.

    Attributes:
        kind: kind of its store.
        chances: f8[n, AHEAD], probability to be full, by look.
        came: f8[n, AHEAD], 1 if it was; NaN beyond the end of the month.
        named: days from the beginning of the leak until it was named, inf: it was not; None: it does not leak.
        names: share of the looks without a leak at which one was named.
    """

    kind: str
    chances: Array
    came: Array
    named: float | None
    names: float


def _weekday() -> int:
    return datetime.fromtimestamp(START / 1e6, dt.UTC).weekday()


def _weekends(counts: Array, rng: Rng) -> Array:
    """Return the levels of a store whose reader is away from Friday 18:00 to Monday morning, or slow."""
    minutes = np.arange(DAYS * DAY)
    weekday, hour = (minutes // DAY + _weekday()) % 7, minutes % DAY / _HOUR
    away = (weekday >= 5) | ((weekday == 4) & (hour >= 18)) | ((weekday == 0) & (hour < rng.integers(5, 8)))
    pace = follow(counts, rng) * rng.uniform(0.5, 1.5)
    pace[away] = rng.choice([0.0, rng.uniform(0.1, 0.4)]) * counts.mean()
    backlog = Part(counts, _troubled(pace, counts, rng)).backlog
    saturdays = [day * DAY for day in range(DAYS) if (day + _weekday()) % 7 == 5]
    highest = max(backlog[begin : begin + 3 * DAY].max() for begin in saturdays)
    held = highest * (rng.uniform(1.1, 2.0) if rng.random() < 0.5 else rng.uniform(0.8, 0.97))
    return np.asarray(backlog / held)


def _working_days(counts: Array, rng: Rng) -> Array:
    """Return the levels of a store whose reader has a limit; there is less on weekends, and it may be more each day."""
    days = np.arange(DAYS * DAY) // DAY
    counts = counts * np.where((days + _weekday()) % 7 < 5, 1.0, rng.uniform(0.2, 0.6))
    counts = counts * np.exp(rng.choice([0.0, rng.uniform(0.002, 0.015)]) * np.arange(DAYS * DAY) / DAY)
    counts /= counts.mean()
    limit = np.quantile(hourly(counts), rng.uniform(0.75, 0.92))
    backlog = Part(counts, _troubled(np.full(counts.size, limit), counts, rng)).backlog
    return np.asarray(backlog / max(backlog[: 14 * DAY].max() * rng.uniform(1.05, 2.0), 1.0))


def draw(number: int, texts: Mapping[str, str], split: Split) -> Month:
    """Draw the month of the store of a number. texts: loads by name. UsageError: no draw is of an ordinary size."""
    rng, kind = np.random.default_rng((_SEED, number, len(split))), KINDS[number % len(KINDS)]
    leaks_from = None
    if kind in KINDS[-2:]:
        counts = month_of(texts[str(rng.choice(sorted(texts)))], rng)
        levels = _weekends(counts, rng) if kind == "weekends" else _working_days(counts, rng)
    else:
        month = draw_month(int("once" in kind), texts, rng)
        backlog = total_backlog(month.parts)
        levels = backlog * month.reach / backlog.max()
    if "leaks" in kind:
        leaks_from = int(rng.integers(5 * DAY, 14 * DAY))
        leak = LEAKS[KINDS.index(kind) - 2] / 100.0
        levels = levels + leak * np.maximum(0, np.arange(levels.size) - leaks_from) / DAY
    full = np.flatnonzero(levels >= 1.0)
    return Month(kind, levels, int(full[0]) if full.size else None, leaks_from)


def look_at(number: int, texts: Mapping[str, str], split: Split) -> Looks:
    """Return the looks at the month of a number."""
    month = draw(number, texts, split)
    by_hour = month.levels[: DAYS * DAY].reshape(-1, _HOUR)
    by_unit = [np.round(10_000 * of_hour).clip(0, 32_767).astype("<i2") for of_hour in (by_hour.min(1), by_hour.max(1))]
    last = DAYS * DAY // _HOUR if month.full is None else month.full // _HOUR
    chances, came, named, names = [], [], np.inf, []
    for hour in range(LEAST_KNOWN + EVERY, last, EVERY):
        lows, highs = (values[:hour][-28 * 24 :].tobytes() for values in by_unit)
        look = look_weeks(lows, highs, float(month.levels[hour * _HOUR]), seed_of(str(number), hour))
        assert look is not None
        chances.append([1.0 - look.lasting(ahead) for ahead in AHEAD])
        is_known = [month.full is not None or (hour + ahead) * _HOUR <= DAYS * DAY for ahead in AHEAD]
        is_full = [month.full is not None and month.full <= (hour + ahead) * _HOUR for ahead in AHEAD]
        came.append([float(full) if known else np.nan for full, known in zip(is_full, is_known, strict=True)])
        leaks = month.leaks_from is not None and hour * _HOUR > month.leaks_from
        if leaks and look.leak and month.leaks_from is not None:
            named = min(named, hour * _HOUR / DAY - month.leaks_from / DAY)
        elif not leaks:
            names.append(look.leak > 0.0)
    days = None if month.leaks_from is None else float(named)
    return Looks(month.kind, np.array(chances), np.array(came), days, float(np.mean(names)) if names else 0.0)


def skill(looks: Sequence[Looks], number: int, climatology: float) -> float:
    """Return the Brier skill of some months against a rule that always says `climatology`. number: index in AHEAD."""
    error = beaten = 0.0
    for own in looks:
        known = np.isfinite(own.came[:, number])
        came = own.came[known, number]
        error += float(((own.chances[known, number] - came) ** 2).sum())
        beaten += float(((climatology - came) ** 2).sum())
    return 1.0 - error / beaten if beaten else np.nan


def _share_full(looks: Sequence[Looks], number: int) -> float:
    return float(np.nanmean(np.concatenate([own.came[:, number] for own in looks])))


def _skill_text(looks: Sequence[Looks], number: int) -> str:
    """Return the skill over the share of these looks that were followed by full, with nine tenths of its samples."""
    share, rng = _share_full(looks, number), np.random.default_rng(_SEED)
    if not share:
        return "none fills"
    drawn = []
    for _ in range(_DRAWN):
        some = [looks[row] for row in rng.integers(len(looks), size=len(looks))]
        part = _share_full(some, number)
        drawn.append(skill(some, number, part) if part else np.nan)
    low, high = np.nanquantile(drawn, (0.05, 0.95))
    return f"{skill(looks, number, share):.2f} ({low:.2f} to {high:.2f})"


def _row(name: str, looks: Sequence[Looks]) -> list[str]:
    days = [own.named for own in looks if own.named is not None]
    within = f"{sum(day <= _NAMED_WITHIN for day in days)} of {len(days)}" if days else ""
    return [
        name,
        str(len(looks)),
        str(sum(bool(np.nansum(own.came)) for own in looks)),
        *(_skill_text(looks, number) for number in range(len(AHEAD))),
        within,
        f"{100 * np.mean([own.names for own in looks]):.1f} %",
    ]


def section(looks: Sequence[Looks], command: str) -> str:
    """Return the part of docs/forecast.md about the long forecast, in Markdown. command: what measured it."""
    header = [
        "stores",
        "number",
        "fill",
        *(f"skill, {ahead} h" for ahead in AHEAD),
        "leak named in 3 days",
        "named where none is",
    ]
    rows = [_row(kind, [own for own in looks if own.kind == kind]) for kind in KINDS]
    return f"""{BEGIN}
Asked every six hours in months of {len(looks)} stores, of loads that nothing was tuned on: Brier skill over climatology
(nine tenths of samples by store). A reader that stops cannot be foreseen three days ahead.

{markdown(header, [_row("all", looks), *rows])}

Counted by `{command}` on {dt.datetime.now(dt.UTC).date().isoformat()}.
{END}"""


def main() -> int:
    """Return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.tools.score.weeks", description=__doc__)
    parser.add_argument("--loads", type=Path, required=True, help="folder of real counts")
    parser.add_argument("--split", choices=("tuning", "test"), default="test", help="whose series")
    parser.add_argument("--stores", type=int, default=STORES, help=f"how many; by default {STORES}")
    parser.add_argument("--write", action="store_true", help="write docs/forecast.md")
    options = parser.parse_args()
    try:
        texts = {name: (options.loads / f"{name}.csv").read_text(encoding="utf-8") for name in SERIES[options.split]}
    except OSError as error:
        raise SystemExit(f"{options.loads}: {error.strerror}; expected: a folder of loads") from None
    with ProcessPoolExecutor(cores()) as pool:
        looks = list(pool.map(look_at, range(options.stores), repeat(texts), repeat(options.split)))
    words = section(looks, "python -m tests.tools.score.weeks --loads FOLDER --write")
    print(words)
    if options.write:
        write_between(ROOT / "docs" / "forecast.md", words, BEGIN, END)
    return 0


if __name__ == "__main__":
    sys.exit(main())
