"""`make bench`: measures, prints a table, writes docs/performance.md and its pictures.

A whole run writes into docs/, and with `--release` appends a line to the history. With `--quick` or `--only` it writes
into build/bench/ instead, for a look.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from streams.log import configure_logging
from tests.tools.bench import (
    backlog,
    console,
    forecasts,
    growth,
    history,
    kernel,
    latency,
    many,
    mechanisms,
    page,
    pictures,
    plain_loop,
    restart,
    rules,
    sparse,
    summary,
    throughput,
)
from tests.tools.bench.calibration import calibrate
from tests.tools.bench.report import Report
from tests.tools.bench.rig import Say, open_rig
from twin.base.errors import MqtwinError

_WITH_SPARK: dict[str, Any] = {
    "throughput": throughput,
    "forecasts": forecasts,
    "backlog": backlog,
    "latency": latency,
    "many": many,
    "restart": restart,
    "growth": growth,
}
ROOT = Path(__file__).resolve().parents[3]
_ALONE: dict[str, Any] = {
    "kernel": kernel,
    "mechanisms": mechanisms,
    "plain_loop": plain_loop,
    "rules": rules,
    "sparse": sparse,
    "console": console,
}
NAMES = (*_ALONE, *_WITH_SPARK)  # of a whole run


def main() -> int:
    """The exit status."""
    arguments = _arguments()
    terminal = Console()
    names = arguments.only or NAMES
    report = Report(
        command="make bench" + (f' ARGS="{" ".join(sys.argv[1:])}"' if sys.argv[1:] else ""), quick=arguments.quick
    )
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="mqtwin-bench-") as folder:
        log = Path(folder) / "job.log"
        with log.open("w", encoding="utf-8") as stream:
            configure_logging(json_lines=True, stream=stream)
            try:
                _measure(report, Path(folder), names, terminal, quick=arguments.quick)
            except MqtwinError as error:
                print(f"mqtwin bench: {error}", file=sys.stderr)
                return 1
    report.seconds = time.monotonic() - began
    whole = not arguments.quick and set(names) == set(NAMES)
    docs = ROOT / "docs" if whole else ROOT / "build" / "bench"
    pictures.draw(report, docs / "images")
    if arguments.release:
        history.append(history.of_report(report, version("mqtwin")), docs)
    page.write(report, docs, ROOT / page.APPENDIX if whole else docs / "appendix.md")
    summary.show(terminal, report)
    terminal.print(f"{(docs / 'performance.md').relative_to(ROOT)} written, {report.seconds:.0f} s in all")
    return 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a few batches of each, about three minutes")
    parser.add_argument("--only", action="append", choices=NAMES, help="this part only; may be repeated")
    parser.add_argument("--release", action="store_true", help="append the figures to docs/performance-history.jsonl")
    options = parser.parse_args()
    if options.release and (options.quick or options.only):
        parser.error("--release is of a whole run: without --quick and --only")
    return options


def _measure(report: Report, folder: Path, names: tuple[str, ...], terminal: Console, *, quick: bool) -> None:
    with _progress(terminal, len(names)) as (say, done):

        def run(name: str, measure: Callable[[], Any]) -> None:
            if name in names:
                report.calibrations.append(calibrate(name))
                setattr(report, name, measure())
                done()

        for name, part in _ALONE.items():
            run(name, partial(part.measure, folder, say, quick=quick))
        if set(names) - set(_ALONE):
            with open_rig(folder, say) as rig:
                for name, part in _WITH_SPARK.items():
                    run(name, partial(part.measure, rig, say, quick=quick))
        report.calibrations.append(calibrate("end"))


@contextlib.contextmanager
def _progress(terminal: Console, parts: int) -> Iterator[tuple[Say, Callable[[], None]]]:
    """Show progress: one line rewritten in place on a terminal, a line per step elsewhere."""
    columns = (
        SpinnerColumn(),
        TextColumn("{task.completed}/{task.total}"),
        TextColumn("{task.description}"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=terminal, transient=True, disable=not terminal.is_terminal) as progress:
        task = progress.add_task("", total=parts)
        began = time.monotonic()

        def say(what: str) -> None:
            progress.update(task, description=what)
            if not terminal.is_terminal:
                print(f"{time.monotonic() - began:5.0f} s  {what}", flush=True)

        yield say, lambda: progress.advance(task)


if __name__ == "__main__":
    sys.exit(main())
