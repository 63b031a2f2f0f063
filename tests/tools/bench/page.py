"""docs/performance.md and its appendix: tables and sentences, all from the figures of one run."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from tests.tools.bench import backlog, growth, history, rules, throughput
from tests.tools.bench.backlog import HIGH_FIRST, Backlog
from tests.tools.bench.calibration import QUIET, Calibration, share_of_best
from tests.tools.bench.console import Console
from tests.tools.bench.forecasts import OFF, ON, Forecasts
from tests.tools.bench.growth import Growth
from tests.tools.bench.kernel import Kernel
from tests.tools.bench.latency import Latency
from tests.tools.bench.profile import Profile
from tests.tools.bench.report import Report
from tests.tools.bench.restart import Restart
from tests.tools.bench.rig import Span
from tests.tools.bench.rules import Cost, Rules
from tests.tools.bench.sparse import DAY_HOURS, Sparse
from tests.tools.bench.summary import CLUSTER_PEAK, targets
from tests.tools.bench.throughput import Way
from tests.tools.bench.timeline import STAGES, Timeline
from tests.tools.bench.wording import markdown, ms, rate, share, us

APPENDIX = "tests/tools/bench/appendix.md"

_FUNCTIONS = 10
_FLAT = 1.15


def write(report: Report, docs: Path, appendix: Path) -> None:
    """Write the page and its appendix; `tests.tools.bench.pictures` draws their pictures."""
    parts = [_head(report), *_parts(report)]
    releases = history.read(docs)
    if releases:
        history.draw(releases, docs)
        parts.append(history.section(releases))
    parts.append(_foot(report))
    docs.mkdir(parents=True, exist_ok=True)
    (docs / "performance.md").write_text("\n\n".join(parts) + "\n", encoding="utf-8")
    appendix.write_text("\n\n".join(_appendix(report)) + "\n", encoding="utf-8")


def _parts(report: Report) -> list[str]:
    parts = []
    if report.throughput:
        parts += [_throughput(report.throughput), _holds_back(report.throughput)]
    if report.kernel is not None:
        parts.append(_kernel(report.kernel))
    if report.forecasts is not None:
        parts.append(_forecasts(report.forecasts))
    if report.backlog is not None:
        parts.append(_backlog(report.backlog))
    if report.latency:
        parts.append(_latency(report.latency))
    if report.timelines:
        parts.append(_timelines(report.timelines))
    if report.many is not None:
        parts.append(_many(report.many))
    if report.restart is not None:
        parts.append(_restart(report.restart, report.kernel))
    if report.growth is not None:
        parts.append(_growth(report.growth))
    return parts


def _appendix(report: Report) -> list[str]:
    parts = ["# Performance: appendix"]
    if report.throughput:
        parts.append(_warming(report.throughput))
        parts += [_functions(way.name, way.profile) for way in report.throughput if way.profile is not None]
    if report.mechanisms is not None:
        parts += [_mechanisms(report.mechanisms), _yardstick(report.plain_loop or {})]
    if report.rules is not None:
        parts.append(_rules(report.rules))
    if report.sparse is not None:
        parts.append(_sparse(report.sparse))
    if report.console is not None:
        parts.append(_console(report.console))
    if report.latency:
        parts.append(_tail(report.latency))
    return [*filter(None, parts), _foot(report)]


def _head(report: Report) -> str:
    rows = [[target.what, target.aim, target.measured, "yes" if target.met else "**no**"] for target in targets(report)]
    aims = markdown(["", "target", "measured", "met"], rows) if rows else ""
    return f"""# Performance

Machine: {report.machine}; on average {report.load:.1f} other runnable processes before the start.
{report.versions}.

Broker, Spark and the producer share these cores. Compare ratios within one run, and CPU time, which is that of all
processes: Spark's JVM, its Python workers, the broker, the driver.

{aims}

{_quiet(report.calibrations)}

{_verdict(report.calibrations)} `{APPENDIX}` has further figures."""


def _foot(report: Report) -> str:
    quick = " A quick run: figures of a few batches, good for a first look only." if report.quick else ""
    minutes = f"{report.seconds / 60:.1f} minutes"
    return f"Written by `{report.command}` on {report.date}, in {minutes}.{quick} Do not edit it: run it again."


def _quiet(calibrations: list[Calibration]) -> str:
    """Say how fast the machine was before each part."""
    rows = [
        [
            each.part,
            f"{each.copied:.1f}",
            f"{each.hashed:.0f}",
            f"{share_of_best(calibrations, each):.0%}".replace("%", " %"),
        ]
        for each in calibrations
    ]
    head = ["before", "memory copied, GB/s", "ids hashed, million/s", "of the best"]
    return f"Two pieces of work that never change, by wall clock:\n\n{markdown(head, rows)}"


def _verdict(calibrations: list[Calibration]) -> str:
    """Say which figures other work has slowed down."""
    slow = [each.part for each in calibrations if share_of_best(calibrations, each) < QUIET]
    if slow:
        return f"**The machine was not quiet before: {', '.join(slow)}.** Figures of these parts are too low."
    return "The machine was quiet all the time."


# --- throughput ------------------------------------------------------------------------------------------------------


def _throughput(ways: list[Way]) -> str:
    rows = [
        [
            way.name,
            f"{way.published.events / way.published.records:,.0f}",
            f"{way.published.bytes / way.published.events:.0f}",
            rate(way.job.rate),
            us(way.job.cpu_us),
            f"{share(way.of_ceiling, 1)} of {rate(way.ceiling.rate)}",
            f"{share(way.job.rate, way.decoding.rate)} of {rate(way.decoding.rate)}",
            f"{way.job.rate / CLUSTER_PEAK:.1f}",
            rate(way.published.events / way.published.seconds),
        ]
        for way in ways
    ]
    head = ["", "events per record", "bytes per event", "events/s", "CPU µs per event"]
    head += ["of the connector alone", "of connector and decoding", f"times {CLUSTER_PEAK:,}/s", "published, events/s"]
    sizes = "; ".join(
        f"{way.name} {way.job.batches} batches of {way.job.events // way.job.batches:,} events" for way in ways
    )
    processes = markdown(
        ["CPU µs per event", "Spark's JVM", "Python workers", "broker", "driver"],
        [[way.name, *(us(way.job.us(name)) for name in ("spark", "python", "broker", "driver"))] for way in ways],
    )
    return f"""## From Kafka to Kafka

The job of `mqtwin stream` processes a published recording and writes states and alerts back to Kafka. Measured after a
warm-up, from the end of one batch to the end of the last: {sizes}. Figures are medians of the last
{throughput.STEADY_ROUNDS} rounds.

{throughput.HELD:,} messages are held in four structures of four queues each. Two queue managers put and get, gets have
a message id, one put in ten is in a unit of work, every event has a sequence number.

{markdown(head, rows)}

*The connector alone* is Spark's Kafka source with the job's options and no output, *connector and decoding* adds the
job's first stage. {CLUSTER_PEAK:,} put and get events per second is the highest published rate of a uniform cluster.

{processes}

![Events a second and CPU time by content type](images/performance-throughput.svg)"""


def _warming(ways: list[Way]) -> str:
    rows = [
        [
            way.name,
            rate(way.first.job.rate),
            us(way.first.job.cpu_us),
            share(way.first.of_ceiling, 1),
            f"{len(way.rounds)}",
            ", ".join(share(each.compilers, 1) for each in way.rounds) + ("" if way.is_steady else " (not quiet yet)"),
        ]
        for way in ways
    ]
    head = ["in the first round", "events/s", "CPU µs per event", "of the connector", "rounds", "compilers, by round"]
    return markdown(head, rows)


def _holds_back(ways: list[Way]) -> str:
    rows = [[way.name, *(us(value) for value in _steps(way).values())] for way in ways]
    return f"## Cost by step\n\n{markdown(['CPU µs per event', *_steps(ways[0])], rows)}\n\n{_threads(ways)}".rstrip()


def _threads(ways: list[Way]) -> str:
    if not any(way.job.cpu.get("tasks") for way in ways):
        return ""
    names = ("tasks", "compilers", "collector")
    rows = [[way.name, *(us(way.job.us(name)) for name in names), us(_rest(way.job))] for way in ways]
    table = markdown(["CPU µs per event", "tasks", "compilers", "garbage collector", "all others"], rows)
    return f"Spark's JVM by its threads:\n\n{table}"


def _steps(way: Way) -> dict[str, float]:
    """CPU microseconds an event by step: each is what the run with it took more than the one without."""
    return {
        "Kafka and connector": way.ceiling.cpu_us,
        "to Python, decoding": way.decoding.cpu_us - way.ceiling.cpu_us,
        "shuffle, twin, state, sink": way.job.cpu_us - way.decoding.cpu_us,
        "all": way.job.cpu_us,
    }


def _rest(job: Span) -> float:
    return job.us("spark") - sum(job.us(name) for name in ("tasks", "compilers", "collector"))


def _functions(name: str, profile: Profile) -> str:
    if not profile.samples:
        return f"Where Spark's Python workers spend their time with {name} was not to be seen: {profile.why_not}."
    rows = [
        [f"`{function}`" if "(" in function else function, f"{100 * part:.0f} %"]
        for function, part in profile.shares(_FUNCTIONS)
    ]
    table = markdown([f"{name}: Python workers, innermost mqtwin function", "share"], rows)
    return (
        f"{table}\n\n{profile.samples.total():,} samples by py-spy, in a separate run."
        " Compiled kernels count as the function that calls them."
    )


# --- the rest --------------------------------------------------------------------------------------------------------


def _kernel(figures: Kernel) -> str:
    rows = [
        [
            f"{held:,}",
            "any message" if any_order else "the oldest",
            f"{value:.1f}",
            f"{figures.pages[held, any_order]:,.0f}",
        ]
        for (held, any_order), value in figures.apply.items()
    ]
    coding = [[f"decode {name}", f"{value:.1f}"] for name, value in figures.decode.items()]
    coding += [["pack for the shuffle", f"{figures.pack:.1f}"], ["unpack", f"{figures.unpack:.1f}"]]
    return f"""## The kernel alone

One core, without Kafka and Spark; event batches of 20,000 for one structure, medians of CPU time.

{markdown(["messages held", "gets take", "million events/s", "pages written per event batch"], rows)}

{markdown(["", "million events/s"], coding)}

An event is {figures.packed_bytes:.0f} bytes in the shuffle."""


def _mechanisms(rates_by_mechanism: dict[str, dict[int, float]]) -> str:
    levels = list(next(iter(rates_by_mechanism.values())))
    first = next(iter(rates_by_mechanism.values()))[levels[0]]
    rows = [
        [name, *(f"{rates[held]:.1f}" for held in levels), f"{rates[levels[0]] / first:.2f}"]
        for name, rates in rates_by_mechanism.items()
    ]
    heads = ["", *(f"{held:,} held" for held in levels), f"relative to a structure at {levels[0]:,}"]
    return f"""## Each mechanism

The event loop alone: puts and gets of the oldest message of one queue by id, in event batches of 20,000, million
events/s of a core, medians. SCM in use: 10 % of the messages are there, and each put moves one.

{markdown(heads, rows)}"""


def _yardstick(rates: dict[int, float]) -> str:
    if not rates:
        return ""
    figures = ", ".join(f"{value:.1f} M events/s at {held:,} held" for held, value in rates.items())
    return (
        "For comparison, a loop in C (`tests/tools/bench/plain_loop.c`, -O3) that only finds messages by their id and "
        "counts"
        f" them by queue, without any rule: {figures}."
    )


def _rules(measured: Rules) -> str:
    head = ["", "ns an event with it", "without", "difference", "share"]
    tables = [
        markdown([traffic, *head[1:]], [_rule(cost, cost.rule) for cost in measured.costs_of(traffic)])
        for traffic in (rules.PLAIN, rules.MIXED)
    ]
    others = [cost for cost in measured.costs if cost.traffic not in (rules.PLAIN, rules.MIXED)]
    tables.append(markdown(head, [_rule(cost, f"{cost.traffic}: {cost.rule}") for cost in others]))
    return f"""## Each rule

The event loop with {rules.HELD:,} messages held, compiled without the functions of one rule, beside the whole loop on
the same events: nanoseconds of CPU an event, medians of blocks in turn. Instructions of several rules run at once in a
processor, so the differences do not add up. *Structure* is the traffic of each mechanism, *mixed traffic* that of the
kernel alone (`docs/performance.md`).

{(2 * chr(10)).join(tables)}

{_where_rates_lie(measured)}"""


def _rule(cost: Cost, name: str) -> list[str]:
    return [name, f"{cost.whole:.1f}", f"{cost.without:.1f}", f"{cost.saved:.1f}", share(cost.saved, cost.whole)]


def _where_rates_lie(measured: Rules) -> str:
    """Say which rates the loop reaches, and what is between it and the next ones."""
    sentences = []
    for traffic in (rules.PLAIN, rules.MIXED):
        whole, bare, around = measured.whole(traffic), measured.bare(traffic), measured.around[traffic]
        dearest = [cost for cost in measured.costs_of(traffic) if cost.rule != rules.ALL.name][:3]
        named = ", ".join(f"{cost.rule.partition(':')[0]} ({cost.saved:.1f} ns)" for cost in dearest)
        aims = ", ".join(_aim(million, whole + around, bare + around) for million in (20, 30, 40))
        sentences.append(
            f"**{traffic.capitalize()}**: an event takes {whole:.1f} ns in the loop and {around:.1f} in the twin "
            f"around it, {1000 / (whole + around):.0f} M events/s. The dearest rules are {named}. Without any rule but "
            f"the index of ids, {bare:.1f} ns remain, {1000 / (bare + around):.0f} M events/s: event and route are "
            f"read, the id is found, the row of the message is written. {aims}."
        )
    return "\n\n".join(sentences)


def _aim(million: int, whole: float, bare: float) -> str:
    """Return where a rate lies between the loop and what is left of it without rules."""
    limit = 1000 / million
    if whole <= limit:
        return f"{million} M are reached"
    if bare >= limit:
        return f"{million} M ({limit:.0f} ns) lie beyond a loop without rules"
    return f"{million} M ({limit:.0f} ns) would need {share(whole - limit, whole - bare)} of what the rules cost"


def _forecasts(measured: Forecasts) -> str:
    rows = [
        [
            f"{event_rate:,}",
            f"{measured.looks[event_rate]:,}",
            rate(measured.rate(event_rate, ON)),
            rate(measured.rate(event_rate, OFF)),
            share(measured.ratio(event_rate), 1),
            us(measured.cpu_us(event_rate, ON)),
            us(measured.cpu_us(event_rate, OFF)),
        ]
        for event_rate in measured.runs
    ]
    head = ["events per second of event time", "forecasts", "events/s with", "without", "with relative to without"]
    head += ["CPU µs per event with", "without"]
    [first_runs, *_] = measured.runs.values()
    return f"""## Cost of forecasts

The same Arrow events through the real job with and without forecasts, {len(first_runs[ON])} alternating runs each,
medians. Four structures fill all the time: each makes a forecast every 10 seconds of event time, the maximum.
*Without* is a horizon of one minute.

{markdown(head, rows)}

One forecast of a structure takes {measured.look_ms:.1f} ms, so a store in danger
takes {measured.look_ms / 100:.2f} % of a
core in real time. Forecasts are made per event time: they cost more with few events per 10 seconds of it, and matter
only while a job works off a backlog.

With a [snapshot](time-travel.md) after every batch the same job has {share(measured.snapshots_ratio(), 1)} of the
throughput without, of {len(measured.snapshots[ON])} alternating runs each; by default there is one in six hours of
event time."""


def _backlog(measured: Backlog) -> str:
    rows = [
        [
            name.replace("high", f"{backlog.HIGH:,} held").replace("low", f"{backlog.LOW:,} held"),
            ms(phase["batch_ms"]),
            f"{phase['pages']:,.0f}",
            f"{phase['page_bytes'] / 1e6:.1f} MB",
            ms(phase["apply_us"] / 1000),
            ms(phase["write_us"] / 1000),
        ]
        for name, phase in measured.phases.items()
    ]
    ratio = measured.ratio()
    flat = "It is flat" if ratio <= _FLAT else "It is **not** flat"
    events = measured.phases[HIGH_FIRST]["events"]
    return f"""## Cost of a backlog

The same {events:,.0f} events per batch through the real job, with {backlog.LOW:,} and with {backlog.HIGH:,} messages
held in two structures; medians.

{markdown(["", "duration of a batch", "values written", "bytes", "kernel", "writing"], rows)}

{flat}: with {backlog.HIGH // backlog.LOW} times the messages held, a batch takes {ratio:.2f} times as long and writes
{measured.ratio("pages"):.2f} times as many pages.

Gets of any message change a row or two of almost every page, which
[journals](architecture.md#state-pages-not-blobs) take; afterwards rows are scattered over the pages.

![Milliseconds and pages of each batch](images/performance-backlog.svg)"""


def _sparse(measured: Sparse) -> str:
    rows = [[f"{stores:,}", f"{measured.events:,}", rate(events)] for stores, events in measured.replayed.items()]
    return f"""## Stores with few events

A replay of {DAY_HOURS} hours on one core, without Kafka and Spark, by wall clock. Puts and gets are spread evenly over
all stores: the more stores, the fewer events each has between two ticks.

{markdown(["stores", "events", "events/s"], rows)}

A tick without a look ahead takes {us(measured.tick_us)} µs of CPU with its event, an event between two ticks
{us(measured.in_tick_us)} µs.

The stateful stage takes {measured.first_touch_ms:.2f} ms of CPU for the first event of a store, and
{measured.touch_ms:.2f} ms for one of a later batch, without Spark's own work. A store without messages holds
{measured.array_bytes:,} bytes of arrays and {measured.idle_bytes:,} bytes in the state store."""


def _console(measured: Console) -> str:
    rows = [
        [name, ms(measured.median(name)), ms(measured.longest(name)), f"{len(times)}"]
        for name, times in measured.milliseconds.items()
    ]
    table = markdown(["", "median", "longest", "times"], rows) if rows else f"Not measured: {measured.why_not}."
    return f"""## The console's page

In Chromium, 1440 x 900, without a graphics card and with an empty cache, until the frame is drawn; what-if waits 120 ms
for the slider to rest.

{table}"""


def _latency(measured: list[Latency]) -> str:
    names = {
        "batch_ms": "a batch",
        "plan_ms": "planning",
        "offsets_ms": "offsets from Kafka",
        "log_ms": "offset log",
        "run_ms": "running",
        "commit_ms": "commit log",
    }
    times = [
        [f"{each.rate:,} events/s", f"{len(each.seconds)}"] + [ms(1000 * each.percentile(p)) for p in (50, 90, 99)]
        for each in measured
    ]
    parts = [
        [f"{each.rate:,} events/s", f"{each.median('events'):,.0f}", f"{each.median('stores'):,.0f}"]
        + [ms(each.median(name)) for name in names]
        for each in measured
    ]
    return f"""## From event to alert

Steady traffic of a hundred stores, at the low rate JSON with one event a record, at the high rate Arrow with a
thousand. One event each fills small structures above their FULLTHRESHOLD: time from passing it to the Kafka client
until its alert is read on the alerts topic.

{markdown(["", "alerts", "p50", "p90", "p99"], times)}

An event waits for the current batch to end, then for its own. Medians of the batches:

{markdown(["", "events", "structures", *names.values()], parts)}

![Percentage of alerts by time in milliseconds](images/performance-latency.svg)"""


def _tail(measured: list[Latency]) -> str:
    spread = [
        [f"{each.rate:,} events/s", *(_range(each.by_minute(percent)) for percent in (50, 99))] for each in measured
    ]
    return f"""## From event to alert

{markdown(["of each minute, from least to most", "p50", "p99"], spread)}

{_slow(measured)}"""


def _range(seconds: list[float]) -> str:
    return f"{1000 * min(seconds):,.0f} to {1000 * max(seconds):,.0f} ms"


def _slow(measured: list[Latency]) -> str:
    """Say what took the time of the batches that make the tail."""
    rows = []
    for each in measured:
        slow = each.slow_batches()
        causes = Counter(batch.cause for batch in slow)
        for cause, count in causes.most_common():
            longest = max(batch.milliseconds for batch in slow if batch.cause == cause)
            rows.append([f"{each.rate:,} events/s", cause, f"{count:,} of {len(each.batches):,}", ms(longest)])
    if not rows:
        return "No batch took more than twice the median."
    head = markdown(
        ["batches above twice the median", "what took most of what they took more", "batches", "longest"], rows
    )
    return f"{head}\n\nA slow batch is followed by one with more records."


def _timelines(measured: list[Timeline]) -> str:
    rows = [
        [
            each.name,
            f"{each.events:,}",
            ms(each.milliseconds),
            *(ms(each.milliseconds_of(label)) for label in ("planning", *STAGES)),
            share(each.busy, 1),
        ]
        for each in measured
    ]
    head = ["", "events", "duration", "planning", *(f"{stage}, all tasks" for stage in STAGES), "cores busy with tasks"]
    return f"""## Where a batch waits

One batch each by wall clock: above, the phases of Spark's driver; below, the tasks on each core. Where no task runs,
the cores wait for the driver.

{markdown(head, rows)}

![Phases and tasks of one batch of each kind](images/performance-timeline.svg)"""


def _many(measured: dict[str, Span]) -> str:
    first = next(iter(measured.values()))
    rows = [
        [name, rate(span.rate), us(span.cpu_us), share(span.rate, first.rate), ms(1000 * span.seconds / span.batches)]
        for name, span in measured.items()
    ]
    return f"""## Many stores

The same number of Arrow events in batches of about {first.events // first.batches:,}, spread over all queues of the
estate; a record has the events of one store, or of all stores of a partition of the topic.

{markdown(["", "events/s", "CPU µs per event", "of the first", "a batch"], rows)}"""


def _restart(measured: Restart, alone: Kernel | None) -> str:
    memory = ""
    if alone is not None:
        memory = f" {alone.array_bytes:.0f} bytes in the arrays that the workers share, including indexes,"
    return f"""## Memory and restart

A held message takes{memory} {measured.page_bytes:.0f} bytes written to the state store when it is put, and
{measured.disk_bytes:.0f} bytes of checkpoint on disk.

A job with {measured.held:,} messages held is killed (`kill -9`) and restarted from its checkpoint without its arrays,
as on another machine: {measured.seconds:.1f} s from the start of the process to the end of its first batch, which took
{measured.batch_s:.1f} s."""


def _growth(measured: Growth) -> str:
    rows = [
        [
            batch.where,
            f"{batch.stores:,}",
            f"{batch.events:,.0f}",
            f"{batch.seconds:.2f} s",
            f"{measured.predicted(batch):.2f} s" + (" (fitted)" if batch.where == growth.BOTH else ""),
            share(measured.predicted(batch), batch.seconds),
        ]
        for batch in measured.batches
    ]
    table = markdown(["", "stores", "events of a batch", "measured", "by the formula", "of measured"], rows)
    return f"""## A cluster by the formula

The [plan of a cluster](sizing.md#a-spark-cluster) against batches of Arrow events in jobs of their own, minutes after
their start. The costs of an event, {us(measured.costs.arrow_us)} µs, and of a store, {measured.costs.store_ms:.2f} ms,
are those that both batches on two cores have; the others are predicted.

{table}"""
