"""A run as a paragraph and a table in Markdown."""

from __future__ import annotations

from typing import Any

from tests.tools.soak.findings import Figure, percentile
from tests.tools.soak.samples import Samples


def title(facts: dict[str, Any]) -> str:
    """Return one line that says what ran."""
    if "stores" in facts:
        return f"{facts['stores']:,} stores, a heartbeat each every 10 s, at most {facts['open_files']:,} open files"
    return f"{facts['rate']:,.0f} events/s in records of NDJSON for {facts['minutes']:.0f} minutes"


def text(facts: dict[str, Any], figures: list[Figure], run: Samples) -> str:
    """Return what ran, what came of it, and the table of figures."""
    batches = [batch["batch_ms"] for batch in run.batches]
    lines = [f"{title(facts)}; {len(batches):,} batches, the job killed {len(run.kills)} times.", ""]
    if facts.get("peak"):
        lines += [f"The highest rate measured just before was {facts['peak']:,.0f} events/s.", ""]
    wrong = "; ".join(facts["wrong"]) or "every event counted once, none lost"
    lines += [f"{facts['sent']:,} events sent; at the end: {wrong}.", ""]
    lines += [
        f"Time of a batch: median {percentile(batches, 0.5):,.0f} ms, 99 % below {percentile(batches, 0.99):,.0f} ms.",
        "",
        *table(figures),
    ]
    return "\n".join(lines) + "\n"


def table(figures: list[Figure]) -> list[str]:
    """Return the lines of a table of figures."""
    lines = ["| quantity | first quarter | last quarter | highest | flat |", "| --- | ---: | ---: | ---: | --- |"]
    for figure in figures:
        unit = f" {figure.unit}" if figure.unit else ""
        numbers = " | ".join(f"{value:,.0f}{unit}" for value in (figure.first, figure.last, figure.highest))
        lines.append(f"| {figure.name} | {numbers} | {'yes' if figure.is_flat else '**no**'} |")
    return lines
