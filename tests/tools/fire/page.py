"""docs/proof.md and its picture, of the outcomes of all runs so far."""

from __future__ import annotations

import statistics
import textwrap
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path

import matplotlib as mpl
import msgspec
from matplotlib.figure import Figure

from tests.tools.fire.plan import INSTANTS, Plan
from tests.tools.fire.run import Outcome, Recovery
from twin.playback.pictures import INK, STYLE, save

ROOT = Path(__file__).resolve().parents[3]
PLANS = Path(__file__).with_name("plans")
OUTCOMES = Path(__file__).with_name("outcomes.json")
PAGE = ROOT / "docs" / "proof.md"
PICTURE = ROOT / "docs" / "images" / "proof.svg"
_WHERE = {
    "planning": "the offsets of a batch are chosen and being written",
    "reading": "records are read, before they are decoded",
    "applying": "a store is checked out, its mirror is not current, events are being applied",
    "writing": "its pages are on their way to the state store, before its header",
    "sending": "state is written, its alerts and its state record are about to go to the sink",
    "state commit": "the state of a partition is committed, the batch is not",
    "sink": "alerts and states are on their way to Kafka, which does not answer",
    "offset commit": "everything is written, the batch is being recorded",
}
_TEXT = """\
# Under fire

`make fire` kills, stops and starves the job in ways that a seed chooses, and compares all that it has written with a
[replay](recordings.md): the records that the checkpoint counts as processed go through the twin again, without Spark,
checkpoint or caches. Every alert, the last state of every store and every dead letter must be there, byte for byte,
and nothing else.

{summary}

| | |
| --- | ---: |
{totals}

Each validation waits until nothing is left to read. It compares all output since the beginning of the run, looks for
alerts that came twice with different content, and adds up accepted events, duplicates and dead letters in each
partition. Then it must see a planted difference. After a kill of all processes the output must be all of the committed
prefix, and nothing beyond the planned batch.

## Kills by instant

A set of runs counts only if a kill struck inside each of these.{void}

| instant | kills | what is half done |
| --- | ---: | --- |
{instants}

## Actions

{actions}.

## Recovery

Seconds from a kill to the next batch in the log, on {cores} cores shared with broker, producer and oracle. After the
loss of Java or of the driver the supervisor starts Spark again, later after each failure in a row.

| killed | times | median | longest |
| --- | ---: | ---: | ---: |
{recoveries}

![Seconds from each kill to the next batch, by what was killed](images/proof.svg)

The longest time from the last action before a validation to the end of the backlog was {drained:.0f} s; beyond
{bound:.0f} s a run fails.

## Run it

    make fire ARGS="--seed 7 --minutes 60"     # seeds 7, 8, 9 ... for an hour, added to this page
    make fire ARGS="--seed 7 --print"          # the plan of a seed: a seed and a commit are the test
    make fire ARGS="--plan FILE --shorten"     # a plan again; one that fails is made shorter

{failed}`make test-nightly` runs failed plans, kept in `tests/tools/fire/plans`, and two fresh seeds.

Shared stores are recomputed from the job's own topic of reports and the bounds of its batches. Not covered: several
hosts (see [cluster](cluster.md#what-was-tested)), spans, too little memory for Java, and a power failure. See also [two
hours under load](measuring.md#two-hours-under-load-and-faults).
"""


class Outcomes(msgspec.Struct):
    """The outcomes of all runs, in the order of their end."""

    outcomes: list[Outcome] = []


def read_outcomes(path: Path = OUTCOMES) -> Outcomes:
    """Return the outcomes so far."""
    return msgspec.json.decode(path.read_bytes(), type=Outcomes) if path.exists() else Outcomes()


def add(outcome: Outcome, cores: int, path: Path = OUTCOMES) -> None:
    """Add an outcome, in the place of an earlier one of its seed, and write page and picture."""
    outcomes = read_outcomes(path)
    outcomes.outcomes = [other for other in outcomes.outcomes if other.seed != outcome.seed] + [outcome]
    outcomes.outcomes.sort(key=lambda other: other.seed)
    text = msgspec.json.format(msgspec.json.encode(outcomes), indent=1)
    path.write_bytes(text + b"\n")
    write(outcomes.outcomes, cores)


def missing_instants(outcomes: Iterable[Outcome]) -> list[str]:
    """Return the instants inside which no kill struck."""
    hits = sum((Counter(outcome.hits) for outcome in outcomes), Counter[str]())
    return [instant for instant in INSTANTS if not hits[instant]]


def write(outcomes: Sequence[Outcome], cores: int) -> None:
    """Write the page and its picture."""
    from tests.tools.fire.world import LIVENESS_SECONDS

    recoveries = _by_label([recovery for outcome in outcomes for recovery in outcome.recoveries])
    actions = sum((Counter(outcome.actions) for outcome in outcomes), Counter[str]())
    hits = sum((Counter(outcome.hits) for outcome in outcomes), Counter[str]())
    missing = missing_instants(outcomes)
    different = [outcome for outcome in outcomes if outcome.difference]
    commits = list(dict.fromkeys(outcome.commit for outcome in outcomes))
    summary = f"{len(outcomes)} seeds, {outcomes[0].seed} to {outcomes[-1].seed}, and commits {', '.join(commits)}."
    validated = sum(outcome.validated for outcome in outcomes)
    totals = {
        "seeds": len(outcomes),
        "minutes": round(sum(outcome.seconds for outcome in outcomes) / 60),
        "actions behind which a validation passed": validated,
        "validations passed": sum(outcome.validations for outcome in outcomes),
        "killed jobs compared with their committed and planned prefix": sum(outcome.prefixes for outcome in outcomes),
        "kills": hits.total(),
        "planted differences seen": f"all {sum(outcome.validations for outcome in outcomes):,}",
        "Kafka records published": sum(outcome.records for outcome in outcomes),
        "events in them": sum(outcome.events for outcome in outcomes),
        "alerts compared": sum(outcome.alerts for outcome in outcomes),
        "dead letters compared": sum(outcome.letters for outcome in outcomes),
        "**differences**": f"**{len(different)}**",
        "faults whose instant did not come": sum(outcome.missed for outcome in outcomes),
    }
    plans = [msgspec.json.decode(path.read_bytes(), type=Plan) for path in sorted(PLANS.glob("*.json"))]
    failures = [f"- seed {plan.seed} at {plan.commit}: {textwrap.shorten(plan.difference, 160)}" for plan in plans]
    text = _TEXT.format(
        summary=summary,
        totals="\n".join(f"| {name} | {_text(value)} |" for name, value in totals.items()),
        instants="\n".join(f"| {name} | {hits[name]} | {where} |" for name, where in _WHERE.items()),
        actions=textwrap.fill(", ".join(f"{name} {count:,}" for name, count in sorted(actions.items())), 116),
        recoveries="\n".join(
            f"| {name} | {len(values)} | {statistics.median(values):.1f} | {max(values):.1f} |"
            for name, values in recoveries.items()
        ),
        void=f" **Not yet: {', '.join(missing)}.**" if missing else "",
        cores=cores,
        drained=max(outcome.drained for outcome in outcomes),
        bound=LIVENESS_SECONDS,
        failed="".join(("Failed once, mended since, and kept:\n\n", "\n".join(failures), "\n\n")) if failures else "",
    )
    PAGE.write_text(text.replace(". \n", ".\n"), encoding="utf-8")
    _draw(recoveries, PICTURE)


def _text(value: int | str) -> str:
    return value if isinstance(value, str) else f"{value:,}"


def _by_label(recoveries: Iterable[Recovery]) -> dict[str, list[float]]:
    """Return the seconds by what was killed, the quickest first."""
    seconds: dict[str, list[float]] = defaultdict(list)
    for recovery in recoveries:
        seconds[recovery.label.removeprefix("kill ")].append(recovery.seconds)
    return dict(sorted(seconds.items(), key=lambda pair: statistics.median(pair[1])))


def _draw(recoveries: dict[str, list[float]], path: Path) -> None:
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(7.5, 0.6 + 0.4 * len(recoveries)), layout="constrained")
        axes = figure.subplots()
        for row, values in enumerate(recoveries.values()):
            spread = [row + 0.3 * (place / max(1, len(values) - 1) - 0.5) for place in range(len(values))]
            axes.plot(values, spread, "o", color=INK, markersize=3, alpha=0.6)
            axes.plot([statistics.median(values)] * 2, [row - 0.3, row + 0.3], color=INK, linewidth=1.5)
        axes.set_yticks(range(len(recoveries)), list(recoveries))
        axes.set_xlabel("seconds to the end of the next batch; the line is the median")
        axes.set_xlim(left=0)
        save(figure, path)
