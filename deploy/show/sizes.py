"""Plans of `mqtwin size` as tables or JSON."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

import msgspec
from rich.console import Console

from deploy.show.terminal import print_table, print_warnings
from twin.estate import PageSet, format_size
from twin.sizing import (
    AdministrationPlan,
    ClusterPlan,
    Extent,
    PageSetPlan,
    QueueFilePlan,
    ScmPlan,
    SmdsPlan,
    StructurePlan,
    ThresholdPlan,
)
from twin.sizing.page_set import usable_pages
from twin.units import as_count, as_rate

_BAR_CELLS = 20
_MQSC_COLUMNS = 72  # of a line of MQSC on z/OS [IBM: MQ, Building command scripts]


def pasteable(commands: str) -> str:
    """Return commands as they are entered: each on its own line, those of MQSC with + where a line would be too long.

    Args:
        commands: joined by ", then ".
    """
    lines: list[str] = []
    for command in commands.split(", then "):
        parts = [""]
        for word in command.split(" "):
            if parts[-1] and len(parts[-1]) + len(word) + len(" +") >= _MQSC_COLUMNS:
                parts.append(f"    {word}")
            else:
                parts[-1] += f" {word}" if parts[-1] else word
        lines.append(" +\n".join(parts))
    return "\n".join(lines)


def print_structure_plans(
    plans: Sequence[StructurePlan], warnings: Iterable[str], init_size: int | None, size: int | None, *, as_json: bool
) -> None:
    """Print the plans of a structure, and warnings on standard error.

    Args:
        plans: The plans.
        warnings: Warnings, one per line.
        init_size: Bytes for which `fits_initially` was computed, if it was.
        size: Bytes for which `fits` was computed, if it was.
        as_json: True prints one JSON object instead of the table.
    """
    headings = ["data", "ratio", "entries", "elements", "bytes", "SIZE"]
    lines = [
        [
            plan.data,
            f"1:{plan.ratio}" if plan.ratio else "",
            f"{plan.entries:,}",
            f"{plan.elements:,}" if plan.elements is not None else "",
            f"{plan.bytes:,}",
            format_size(plan.size_rounded),
            *([f"{plan.fits_initially:,}"] if plan.fits_initially is not None else []),
            *([f"{plan.fits:,}"] if plan.fits is not None else []),
        ]
        for plan in plans
    ]
    if init_size:
        headings.append(f"fit in INITSIZE {format_size(init_size)}")
    if size:
        headings.append(f"fit in {'SIZE ' if init_size else ''}{format_size(size)}")
    _print_plan({"plans": plans}, headings, lines, warnings, {"bytes"}, as_json=as_json)


def print_administration_plan(plan: AdministrationPlan, *, as_json: bool) -> None:
    """Print the plan of an administration structure."""
    lines = [
        ["list entries", f"{plan.entries:,}"],
        *(
            [
                f"least size at CFLEVEL {size.from_cflevel}{'' if size.listed else ', on the line'}",
                f"{size.bytes // 1024:,}K",
            ]
            for size in plan.published
        ),
        ["INITSIZE", format_size(plan.init_size)],
        ["SIZE", format_size(plan.size)],
        ["CFRM", plan.cfrm],
    ]
    headings = ["administration structure", as_count(plan.queue_managers, "queue manager")]
    _print_plan(plan, headings, lines, plan.warnings, as_json=as_json)


def print_threshold_plan(plan: ThresholdPlan, *, as_json: bool) -> None:
    """Print the plan of OFFLD3TH with its command."""
    lines = [
        ["0.75 KB per message", f"{plan.needed / 10**6:,.2f} MB"],
        ["share of SIZE, document's units", f"{plan.documented_pct:.2f} %"],
        ["share of SIZE, in bytes", f"{plan.exact_pct:.2f} %"],
        ["maximum OFFLD3TH", str(plan.latest)],
        [f"OFFLD3TH for up to {plan.aim} % usage", f"around {plan.threshold} (exactly {plan.aimed:.2f})"],
        ["entries used, by the model", f"{plan.ents_pct:.2f} %"],
        ["elements used, by the model", f"{plan.elems_pct:.2f} %"],
        ["maximum OFFLD3TH, by the model", "none" if plan.pools_latest is None else str(plan.pools_latest)],
        *([] if plan.mqsc else [["MQSC", "none: give a larger SIZE"]]),
    ]
    headings = ["threshold", f"{plan.backlog:,} messages in {format_size(plan.size)}"]
    _print_plan(plan, headings, lines, plan.warnings, commands=plan.mqsc, as_json=as_json)


def print_smds_plan(plan: SmdsPlan, *, as_json: bool) -> None:
    """Print the plan of a shared message data set."""
    lines = [
        ["messages offloaded", f"{plan.messages:,}"],
        ["4 KB pages used", f"{plan.pages:,}"],
        ["message blocks", f"{plan.data_blocks:,}"],
        ["space map blocks", f"{plan.map_blocks:,}"],
        ["smallest data set", _extent_text(plan.least)],
        ["smallest that does not expand", _extent_text(plan.unexpanded)],
        *([f"blocks used in {qmgr}'s data set", f"{pct:.1f} %"] for qmgr, pct in plan.used_pct.items()),
    ]
    headings = ["data set", f"DSBLOCK({format_size(plan.ds_block)})"]
    _print_plan(plan, headings, lines, plan.warnings, as_json=as_json)


def print_page_set_plan(plan: PageSetPlan, config: PageSet | None, warnings: Iterable[str], *, as_json: bool) -> None:
    """Print the plan of a page set.

    Args:
        plan: The plan.
        config: The page set of an estate that it is compared with; None: none was given.
        warnings: Warnings before those of the plan, one per line.
        as_json: True prints one JSON object instead of the table.
    """
    lines = [
        *_length_lines(plan),
        ["message pages", f"{plan.pages:,}"],
        ["control pages", f"{plan.control_pages:,} ({plan.control_pct:.2f} %)"],
        ["smallest page set", _extent_text(plan.least)],
        ["smallest that does not expand", _extent_text(plan.unexpanded)],
        ["records by the document", f"{plan.documented_records:,}"],
    ]
    if config is not None:
        lines.append([f"used of {config.name}, {usable_pages(config.pages):,} pages", f"{plan.used_pct:.1f} %"])
    packing = "short messages share pages" if plan.packed else "one short message per page"
    headings = ["page set", f"{plan.messages:,} messages, {packing}"]
    _print_plan(plan, headings, lines, [*warnings, *plan.warnings], as_json=as_json)


def _length_lines(plan: PageSetPlan) -> list[list[str]]:
    lines = []
    for group in plan.lengths:
        formula = f"n = {group.n}, c = {group.c}, " if group.n else ""
        messages = f"{group.messages:,} {group.kind} messages of {format_size(group.length)}"
        lines.append([messages, f"{formula}{group.bytes:,} bytes each"])
    return lines


def print_scm_plans(plans: Sequence[ScmPlan], *, as_json: bool) -> None:
    """Print the plans of storage class memory, a column each."""
    lines = [
        ["entries (without SCM)", *(f"{plan.ents_max:,} ({plan.ents_without:,})" for plan in plans)],
        ["elements (without SCM)", *(f"{plan.elems_max:,} ({plan.elems_without:,})" for plan in plans)],
        ["messages in structure", *(f"{plan.in_structure:,}" for plan in plans)],
        ["messages in SCM", *(f"{plan.in_scm:,}" for plan in plans)],
        ["SCM used", *(_rounded_size(plan.scm_used) for plan in plans)],
        ["SCMMAXSIZE", *(format_size(plan.scm_max_size) if plan.scm_max_size else "none" for plan in plans)],
        ["fixed augmented space", *(_rounded_size(plan.aug_fixed) for plan in plans)],
        ["dynamic augmented space", *(_rounded_size(plan.aug_dynamic) for plan in plans)],
        ["storage of the CF", *(_rounded_size(plan.cf_storage) for plan in plans)],
        ["CFRM", *(plan.cfrm for plan in plans)],
    ]
    warnings = [f"{plan.data}: {warning}" for plan in plans for warning in plan.warnings]
    _print_plan({"plans": plans}, ["SCM", *(plan.data for plan in plans)], lines, warnings, as_json=as_json)


def print_queue_file_plan(plan: QueueFilePlan, *, as_json: bool) -> None:
    """Print the plan of a queue file."""
    lines = [
        ["blocks of 512 bytes", f"{plan.blocks:,}"],
        ["nonpersistent, buffer", f"{plan.nonpersistent_blocks:,}, {format_size(plan.nonpersistent_buffer)}"],
        ["persistent, buffer", f"{plan.persistent_blocks:,}, {format_size(plan.persistent_buffer)}"],
        ["overflow to the file", f"{plan.overflow_blocks:,}"],
        ["file", _rounded_size(plan.file_bytes)],
        [f"used of at most {format_size(plan.max_bytes)}", f"{plan.used_pct:.2f} %"],
        [f"memory of {plan.queues:,} open queues", _rounded_size(plan.memory_bytes)],
    ]
    _print_plan(plan, ["queue file", f"{plan.messages:,} messages"], lines, plan.warnings, as_json=as_json)


def print_cluster_plan(plan: ClusterPlan, *, as_json: bool) -> None:
    """Print the plan of the cores of the job."""
    is_enough = "enough" if plan.is_one_machine else "not enough: a Spark cluster"
    lines = [
        ["cores", f"{plan.cores:,}"],
        ["state partitions", f"{plan.partitions:,}"],
        ["a batch", f"{plan.batch_s:.2f} s"],
        *([f"- {name}", f"{seconds:.2f} s"] for name, seconds in plan.parts_s.items()),
        [f"one machine of {as_count(plan.machine_cores, 'core')}", is_enough],
    ]
    traffic = f"{as_rate(plan.load.events_per_second)} events/s, {plan.load.content_type}"
    _print_plan(plan, [as_count(plan.load.stores, "store"), traffic], lines, plan.warnings, as_json=as_json)


def _print_plan(
    plan: object,
    headings: Sequence[str],
    lines: Iterable[Sequence[str]],
    warnings: Iterable[str] = (),
    optional: Collection[str] = (),
    commands: str | None = None,
    *,
    as_json: bool,
) -> None:
    """Print a plan, and its warnings on standard error.

    Args:
        plan: The plan, for JSON.
        headings: Headings of the table.
        lines: Cells of each row of the table.
        warnings: Warnings, one per line.
        optional: Headings of the columns that a narrow terminal leaves out.
        commands: Commands of the plan. A terminal shows them below the table, elsewhere they are its last line.
        as_json: True prints one JSON object instead of the table.
    """
    print_warnings(warnings)
    if as_json:
        print(msgspec.json.encode(plan).decode())
    elif commands is None or not Console().is_terminal:
        last = [] if commands is None else [["MQSC", commands]]
        print_table(headings, [*lines, *last], right=set(headings[1:]), optional=optional)
    else:
        print_table(headings, lines, right=set(headings[1:]), optional=optional)
        print(f"\n{pasteable(commands)}")


def _extent_text(extent: Extent) -> str:
    """Return the size of a data set in the units in which an administrator allocates it."""
    return f"{extent.pages:,} records, {extent.cylinders:,} cylinders, {_rounded_size(extent.bytes)}"


def _rounded_size(size_bytes: int) -> str:
    """Return a size in at most five characters: exact if it fits (4G), else rounded to a tenth of a unit (3.9G)."""
    exact = format_size(size_bytes)
    if len(exact) <= 5:
        return exact
    for unit, shift in (("T", 40), ("G", 30), ("M", 20), ("K", 10)):
        if size_bytes >> shift:
            return f"{size_bytes / (1 << shift):.1f}{unit}"
    return exact
