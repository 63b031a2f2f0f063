"""Loss of the twin if it is fed by statistics instead of single events: writes the table in docs/feeds.md.

`python -m tests.tools.degrade --cases 10` simulates cases of the scorecard, whose true 2192s are known, degrades each
recording to statistics of one and of fifteen minutes, and plays all three. Statistics exist only at the end of their
interval: alarms count from then.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from tests.tools.degrade.statistics import degrade
from tests.tools.score.alarms import from_alerts
from tests.tools.score.judge import JudgedStore, judge
from tests.tools.score.measures import Measures, measure
from tests.tools.score.recordings import Recorded, recorded, recordings_folder
from tests.tools.score.series import PlayedRecording, play
from tests.tools.score.table import percent, span
from tests.tools.score.truth import fillings
from twin.estate import load_estate
from twin.playback.pages import Alarm, merge
from twin.playback.timeline import Series

ROOT = Path(__file__).resolve().parents[3]
PAGE = ROOT / "docs" / "feeds.md"
BEGIN, END = "<!-- degradation: begin -->", "<!-- degradation: end -->"
INTERVALS = {"single events": 0, "1 minute": 60, "15 minutes": 900}
SLICE_S = 10.0


@dataclass
class Fed:
    """Results of one way to feed the twin over the cases."""

    judged: list[list[JudgedStore]]
    errors: list[np.ndarray]  # percentage points of usage, at each sample
    events: int = 0

    @property
    def measures(self) -> Measures:
        """The measures of all alarms and fillings judged."""
        return measure(self.judged)


def main() -> int:
    """Return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.tools.degrade", description=__doc__)
    parser.add_argument("--cases", type=int, default=10, help="number of cases of the test set")
    parser.add_argument("--print-only", action="store_true", help="leave docs/feeds.md as it is")
    arguments = parser.parse_args()
    folder = recordings_folder(ROOT / "build" / "degrade" / "recordings", fresh=False)
    fed = {name: Fed([], []) for name in INTERVALS}
    for number in range(arguments.cases):
        case = recorded(number, "test", folder)
        score_case(case, fed)
        print(case.name, flush=True)
        if not arguments.print_only:
            write(table(fed, number + 1))  # after each case, as a run that is stopped has measured something too
    print(table(fed, arguments.cases))
    return 0


def write(text: str) -> None:
    """Replace the table in docs/feeds.md."""
    page = PAGE.read_text(encoding="utf-8")
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    PAGE.write_text(f"{before}{BEGIN}\n{text}\n{END}{after}", encoding="utf-8")


def score_case(case: Recorded, fed: dict[str, Fed]) -> None:
    """Play a case in every way and add what it shows."""
    estate = load_estate(case.estate)
    full = play(case.recording, estate)
    truth = {name: fillings(series) for name, series in full.series.items()}
    for name, interval_s in INTERVALS.items():
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "statistics.arrow"
            if interval_s:
                degrade(case.recording, path, interval_s, SLICE_S)
            played = play(path, estate) if interval_s else full
        fed[name].events += played.events
        fed[name].judged.append(
            [
                judge(
                    series,
                    truth[store],
                    delayed(from_alerts(played.alerts, store), interval_s),
                    None,
                    withdrawing_counts=case.hard,
                )
                for store, series in full.series.items()
            ]
        )
        fed[name].errors += [usage_error(series, played, store) for store, series in full.series.items()]


def delayed(alarms: Sequence[Alarm], interval_s: int) -> list[Alarm]:
    """Return alarms as of the time when the statistics behind them exist; overlapping ones are one alarm."""
    if not interval_s:
        return list(alarms)
    step = interval_s * 1_000_000

    def end(time: int) -> int:
        return -(-time // step) * step

    return merge(
        replace(alarm, opened=end(alarm.opened), cleared=None if alarm.cleared is None else end(alarm.cleared))
        for alarm in alarms
    )


def usage_error(series: Series, played: PlayedRecording, store: str) -> np.ndarray:
    """Return the difference of the worst resource's usage from that of the full recording, in points, f8[n]."""
    other = played.series.get(store)
    if other is None:
        return series.usage.max(axis=1)
    rows = np.searchsorted(other.times, series.times, side="right") - 1
    usage = other.usage.max(axis=1)
    return np.abs(np.where(rows >= 0, usage[np.maximum(rows, 0)], 0.0) - series.usage.max(axis=1))


def table(fed: dict[str, Fed], cases: int) -> str:
    """Return the table as Markdown."""
    lines = [
        "| fed by | events | recall | precision | median lead | error of usage, mean | 95 % quantile |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for name, result in fed.items():
        measures = result.measures
        errors = np.concatenate(result.errors)
        lines.append(
            f"| {name} | {result.events:,} | {percent(measures.recall)} of {measures.fillings} | "
            f"{percent(measures.precision)} | {span(measures.lead_p50)} | {errors.mean():.2f} points | "
            f"{np.quantile(errors, 0.95):.2f} points |"
        )
    return "\n".join([*lines, "", f"Measured by `python -m tests.tools.degrade --cases {cases}`."])


if __name__ == "__main__":
    sys.exit(main())
