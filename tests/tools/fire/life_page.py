"""The section of docs/measuring.md about a long life, and its picture, of the data that the run has kept."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from tests.tools.fire.growth import draw, figures, percentile, table
from tests.tools.fire.life import DATA, Facts
from tests.tools.fire.page import ROOT
from tests.tools.fire.samples import Sample, Samples

PAGE = ROOT / "docs" / "measuring.md"
PICTURE = ROOT / "docs" / "images" / "life.svg"
HEADING = "## Two hours under load and faults"
WARM_UP_SECONDS = 90.0  # after a fault, of the four minutes to the next one
_TEXT = """\
{heading}

`make fire ARGS="--life 120 --rate 12000"` runs the job under a steady load of single JSON events and some
random traffic of every kind, with a fault of [make fire](proof.md) each four minutes, and compares all that it has
written with a replay that follows the topic. {when}

- {faults} faults: {kinds}.
- {events:,} events ({load:,} of the load, {rate:,.0f}/s), {alerts} alerts, {letters:,} dead letters, {batches:,}
  batches; time of a batch: median {median:,.0f} ms, 99 % below {high:,.0f} ms.
- **{difference}**
{troubles}
The load is {share:.0f} % of the highest rate on a backlog just before, {peak:,.0f} events/s, so that broker, sender,
replay and the whole topic fit on {cores} cores as well{others}.

{table}

Samples of the {warm_up:.0f} s after each fault, and those without a daemon of workers, are left out.{sampled}

![Descriptors, memory, batch time, records not yet read and disk over the two hours](images/life.svg)
"""


class _LifeData(msgspec.Struct):
    facts: Facts
    samples: list[Sample]
    batches: list[dict[str, Any]]
    kills: list[float]


def write(folder: Path) -> bool:
    """Write the section and the picture; return True if nothing grew. folder: folder of the run's data."""
    data = msgspec.json.decode((folder / DATA).read_bytes(), type=_LifeData)
    facts, outcome = data.facts, data.facts.outcome
    samples = [sample for sample in data.samples if sample.rss["workers"]]
    run = Samples(samples=samples, batches=data.batches, kills=data.kills)
    times = [batch["batch_ms"] for batch in data.batches]
    others = ("publish", "validate")
    kinds = {label: count for label, count in sorted(outcome.actions.items()) if not label.startswith(others)}
    troubles = [f"- Not done by the runner: {fault.action}: {fault.trouble}" for fault in facts.faults if fault.trouble]
    verdict = "At the end all alerts, states, dead letters and the ledger equal those of the replay."
    measured = figures(run, WARM_UP_SECONDS)
    draw(run, PICTURE, _title(facts))
    section = _TEXT.format(
        heading=HEADING,
        when=f"Once, seed {facts.seed}:",
        faults=len(facts.faults),
        kinds=", ".join(f"{label} {count}" for label, count in kinds.items()),
        events=facts.load_events + outcome.events,
        load=facts.load_events,
        rate=facts.rate,
        alerts=outcome.alerts,
        letters=outcome.letters,
        batches=len(times),
        median=percentile(times, 0.5),
        high=percentile(times, 0.99),
        difference=verdict if outcome.validations and not outcome.difference else f"Ended with: {outcome.difference}",
        troubles="".join(f"{line}\n" for line in troubles),
        peak=facts.peak,
        cores=facts.cores,
        others=f"; the machine's load average rose to {facts.peak_load:.0f}" if facts.peak_load > facts.cores else "",
        table="\n".join(table(measured)),
        warm_up=WARM_UP_SECONDS,
        share=100 * facts.rate / facts.peak if facts.peak else 0.0,
        sampled=_sampled(data.samples[-1].seconds / 60, facts.minutes),
    )
    before = PAGE.read_text(encoding="utf-8").partition(HEADING)[0].rstrip()
    PAGE.write_text(f"{before}\n\n{section}", encoding="utf-8")
    return all(figure.is_flat for figure in measured)


def _sampled(minutes: float, whole: float) -> str:
    """Return a sentence where processes and folders were not sampled to the end."""
    return f" Processes and folders were sampled for the first {minutes:.0f} minutes." if minutes < 0.95 * whole else ""


def _title(facts: Facts) -> str:
    return f"{facts.rate:,.0f} events/s in records of JSON for {facts.minutes:.0f} minutes, {len(facts.faults)} faults"
