"""Output of `make bench`: targets with measured values, and the ratios of one run."""

from __future__ import annotations

from dataclasses import dataclass

from rich.console import Console
from rich.table import Table

from tests.bench import forecasts
from tests.bench.report import Report
from tests.bench.wording import ms, rate, share, us

ARROW_TARGET, JSON_TARGET = 1_500_000, 200_000  # events a second, sketches of the design on two cores
SMALL_BATCH_MS = (350, 550)
CLUSTER_PEAK = 496_800  # put and get events a second: the highest published of a uniform cluster


@dataclass(frozen=True, slots=True)
class Target:
    """A target and its measured value."""

    what: str
    aim: str
    measured: str
    met: bool


def targets(report: Report) -> list[Target]:
    """Those of what was measured."""
    results = []
    for name, aim in (("Arrow", ARROW_TARGET), ("JSON", JSON_TARGET)):
        way = report.way(name)
        if way is not None:
            what = f"{name} events/s" + (", one per record" if name == "JSON" else "")
            results.append(Target(what, f"at least {rate(aim)}", rate(way.job.rate), way.job.rate >= aim))
    if report.forecasts is not None:
        ratio = report.forecasts.ratio()
        least = f"at least {100 * forecasts.LEAST:.0f} %"
        results.append(
            Target("throughput with forecasts, relative to without", least, share(ratio, 1), ratio >= forecasts.LEAST)
        )
    if report.latency is not None:
        batch = report.latency.median("batch_ms")
        low, high = SMALL_BATCH_MS
        results.append(Target("a small batch", f"{low} to {high} ms", ms(batch), batch <= high))
    if report.backlog is not None:
        ratio = report.backlog.ratio()
        results.append(Target("a batch at 10^6 messages held, relative to 10^4", "flat", f"{ratio:.2f}", ratio <= 1.15))
    return results


def show(console: Console, report: Report) -> None:
    """Everything as tables on the terminal."""
    if report.throughput:
        _show_throughput(console, report)
    rest = Table("", "measured", title="other measurements", title_justify="left")
    for what, figure in _others(report):
        rest.add_row(what, figure)
    if rest.row_count:
        console.print(rest)
    held = Table("quantity", "target", "measured", "", title="targets", title_justify="left")
    for target in targets(report):
        held.add_row(target.what, target.aim, target.measured, "met" if target.met else "[red]not met[/]")
    if held.row_count:
        console.print(held)


def _show_throughput(console: Console, report: Report) -> None:
    table = Table("Kafka to Kafka", "events/s", "CPU us/event", "of the connector", "of decoding", title_justify="left")
    for way in report.throughput or ():
        table.add_row(
            way.name,
            rate(way.job.rate),
            us(way.job.cpu_us),
            share(way.job.rate, way.ceiling.rate),
            share(way.job.rate, way.decoding.rate),
        )
    console.print(table)


def _others(report: Report) -> list[tuple[str, str]]:
    rows: list[tuple[str, str]] = []
    if report.kernel is not None:
        rows += [
            (
                f"kernel alone, {held:,} messages held{', gets in any order' if any_order else ''}",
                f"{value:.1f} M events/s",
            )
            for (held, any_order), value in report.kernel.apply.items()
        ]
        rows += [(f"decoding {name} alone", f"{value:.1f} M events/s") for name, value in report.kernel.decode.items()]
    rows += [
        (f"{name}, {held:,} messages held", f"{value:.1f} M events/s")
        for name, rates in (report.mechanisms or {}).items()
        for held, value in rates.items()
    ]
    if report.forecasts is not None:
        rows += [
            (f"with forecasts, of without, at {event_rate:,} events per second of event time", share(ratio, 1))
            for event_rate in report.forecasts.runs
            for ratio in (report.forecasts.ratio(event_rate),)
        ]
        rows.append(("a look ahead", f"{report.forecasts.look_ms:.1f} ms"))
    if report.backlog is not None:
        rows += [
            (f"batch, {name}", f"{ms(phase['batch_ms'])}, {phase['pages']:,.0f} pages")
            for name, phase in report.backlog.phases.items()
        ]
    if report.latency is not None:
        rows.append(("event to alert, p50", ms(1000 * report.latency.percentile(50))))
        rows.append(("event to alert, p99", ms(1000 * report.latency.percentile(99))))
    if report.restart is not None:
        rows.append((f"restart with {report.restart.held:,} messages", f"{report.restart.seconds:.1f} s"))
        rows.append(("of these reading the state", f"{report.restart.open_s:.1f} s"))
    return rows
