"""Output of `make bench`: targets with measured values, and the ratios of one run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table

from tests.tools.bench import console, forecasts, many, sparse
from tests.tools.bench.report import Report
from tests.tools.bench.sparse import Sparse
from tests.tools.bench.wording import ms, rate, share, us

CONNECTOR_SHARES = {"JSON": 0.6, "NDJSON": 0.6, "Arrow": 0.45}
CLUSTER_PEAK = 496_800  # put and get events a second: the highest published of a uniform cluster


@dataclass(frozen=True, slots=True)
class Target:
    """A target and its measured value."""

    what: str
    aim: str
    measured: str
    met: bool


def targets(report: Report) -> list[Target]:
    """Return the targets of what was measured, numbered as on the page."""
    results = [*_throughput_targets(report), *_kernel_targets(report)]
    if report.backlog is not None:
        for name, ratio in (
            ("oldest first", report.backlog.ratio()),
            ("in any order", report.backlog.ratio_any_order()),
        ):
            results.append(_at_most(f"P6 a batch with 10^6 held, of one with 10^4, gets {name}", 1.5, ratio, _plain))
    for each in report.latency or ():
        for percent, aim in ((50, 200), (99, 500)):
            what = f"P7 event to alert at {each.rate:,} events/s, p{percent}"
            results.append(_at_most(what, aim, 1000 * each.percentile(percent), ms))
        what = f"P7 event to alert at {each.rate:,} events/s, p99 of p50"
        results.append(_at_most(what, 2.0, each.percentile(99) / each.percentile(50), _plain))
    if report.restart is not None:
        results.append(_at_most(f"P8 restart with {report.restart.held:,} held", 20, report.restart.seconds, _seconds))
    if report.kernel is not None:
        results.append(_at_most("P8 memory of a held message", 64, report.kernel.array_bytes, _bytes))
    if report.forecasts is not None:
        what = "P10 throughput with forecasts, of that without"
        results.append(_at_least(what, forecasts.LEAST, report.forecasts.ratio(), _percent))
        what = "P12 throughput with a snapshot after every batch, of that without"
        results.append(_at_least(what, forecasts.SNAPSHOTS_LEAST, report.forecasts.snapshots_ratio(), _percent))
    return results + _targets_of_size(report)


def _targets_of_size(report: Report) -> list[Target]:
    """Return P11 and P12: many stores, and the console."""
    results = []
    if report.many is not None:
        part = report.many[many.TOGETHER].rate / report.many[many.FOUR].rate
        results.append(
            _at_least("P11 throughput of 1,000 stores in records of partitions, of that of 4", 0.7, part, _percent)
        )
    if report.sparse is not None:
        results += _sparse_targets(report.sparse)
    if report.growth is not None:
        what = "P13 largest error of a batch that the plan of a cluster predicts"
        results.append(_at_most(what, 0.25, report.growth.largest_error(), _percent))
    if report.console is not None:
        for what in report.console.milliseconds:
            results.append(_at_most(f"P12 {what}", console.AIM_MS, report.console.median(what), ms))
    return results


def _throughput_targets(report: Report) -> list[Target]:
    results = []
    for number, name, aim in (("P1", "Arrow", 2.5e6), ("P2", "NDJSON", 1.2e6), ("P3", "JSON", 0.5e6)):
        way = report.way(name)
        if way is not None:
            results.append(_at_least(f"{number} {name} events/s, Kafka to Kafka", aim, way.job.rate, rate))
    for way in report.throughput or ():
        what = f"P4 {way.name}, of the connector alone, steady state"
        results.append(_at_least(what, CONNECTOR_SHARES[way.name], way.of_ceiling, _percent))
    return results


def _kernel_targets(report: Report) -> list[Target]:
    """Return P5: plain puts and gets in turn, and mixed traffic, at few and at many messages held."""
    plain = (report.mechanisms or {}).get("structure", {})
    applied = report.kernel.apply if report.kernel is not None else {}
    mixed = {held: value for (held, any_order), value in applied.items() if not any_order}
    return [
        _at_least(f"P5 kernel, {kind}, {held:,} held", aim, rates[held], _millions)
        for kind, rates, aims in (
            ("plain puts and gets", plain, {10_000: 40.0, 10_000_000: 10.0}),
            ("mixed traffic", mixed, {10_000: 25.0, 10_000_000: 6.0}),
        )
        for held, aim in aims.items()
        if held in rates
    ]


def _at_least(what: str, aim: float, measured: float, say: Callable[[float], str]) -> Target:
    return Target(what, f"at least {say(aim)}", say(measured), measured >= aim)


def _at_most(what: str, aim: float, measured: float, say: Callable[[float], str]) -> Target:
    return Target(what, f"at most {say(aim)}", say(measured), measured <= aim)


def _percent(part: float) -> str:
    return share(part, 1)


def _plain(ratio: float) -> str:
    return f"{ratio:.2f}"


def _seconds(seconds: float) -> str:
    return f"{seconds:.0f} s"


def _bytes(size: float) -> str:
    return f"{size:.0f} bytes"


def _millions(value: float) -> str:
    return f"{value:.1f} M events/s"


def _sparse_targets(measured: Sparse) -> list[Target]:
    """Return P11 of stores with few events each."""
    stores, replayed = max(measured.replayed.items())
    first, later = measured.first_touch_ms, measured.touch_ms
    return [
        _at_most("P11 CPU of a tick without a look", sparse.TICK_US, measured.tick_us, _microseconds),
        _at_least(f"P11 replay of a day of {stores:,} stores, events/s", sparse.DAY_RATE, replayed, rate),
        _at_most("P11 first event of a store, stateful stage", sparse.FIRST_TOUCH_MS, first, _milliseconds),
        _at_most("P11 a later batch of a store, stateful stage", sparse.TOUCH_MS, later, _milliseconds),
        _at_most("P11 arrays of an idle store", sparse.IDLE_BYTES, measured.array_bytes, _bytes),
    ]


def _microseconds(duration: float) -> str:
    return f"{duration:.1f} µs"


def _milliseconds(duration: float) -> str:
    return f"{duration:.2f} ms"


def show(terminal: Console, report: Report) -> None:
    """Everything as tables on the terminal."""
    if report.throughput:
        _show_throughput(terminal, report)
    rest = Table("", "measured", title="other measurements", title_justify="left")
    for what, figure in _others(report):
        rest.add_row(what, figure)
    if rest.row_count:
        terminal.print(rest)
    held = Table("quantity", "target", "measured", "", title="targets", title_justify="left")
    for target in targets(report):
        held.add_row(target.what, target.aim, target.measured, "met" if target.met else "[red]not met[/]")
    if held.row_count:
        terminal.print(held)


def _show_throughput(terminal: Console, report: Report) -> None:
    table = Table("Kafka to Kafka", "events/s", "CPU us/event", "of the connector", "of decoding", title_justify="left")
    for way in report.throughput or ():
        table.add_row(
            way.name,
            rate(way.job.rate),
            us(way.job.cpu_us),
            share(way.of_ceiling, 1),
            share(way.job.rate, way.decoding.rate),
        )
    terminal.print(table)


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
    for each in report.latency or ():
        for percent in (50, 99):
            what = f"event to alert at {each.rate:,} events/s, p{percent}"
            rows.append((what, ms(1000 * each.percentile(percent))))
    rows += [(f"Arrow, {name}", f"{rate(span.rate)} events/s") for name, span in (report.many or {}).items()]
    if report.restart is not None:
        rows.append((f"restart with {report.restart.held:,} messages", f"{report.restart.seconds:.1f} s"))
        rows.append(("of these reading the state", f"{report.restart.open_s:.1f} s"))
    return rows
