"""Plans of `mqtwin size` as documents: a table, and commands to paste."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from deploy.show.document import Code, Document, Table
from twin.base.errors import UsageError
from twin.base.units import as_count, as_rate, as_times
from twin.estate import PageSet, QueueFile, Structure, format_size
from twin.estate.model import StoreConfig, packs
from twin.sizing import (
    AdministrationPlan,
    ClusterPlan,
    Extent,
    Mix,
    PageSetPlan,
    QueueFilePlan,
    ScmPlan,
    SmdsPlan,
    StructurePlan,
    ThresholdPlan,
    plan_page_set,
    plan_queue_file,
    plan_smds,
    plan_structure,
)
from twin.sizing.data_sets import LengthPlan, usable_pages
from twin.sizing.structure import rebuild_advice

_TOO_SMALL_PCT = 150.0  # from which a share is said as a factor
_MQSC_COLUMNS = 72  # of a line of MQSC on z/OS [IBM: MQ, Building command scripts]


def _document(
    plan: object,
    headings: Sequence[str],
    rows: Iterable[Sequence[str]],
    warnings: Iterable[str] = (),
    code: Code | None = None,
    optional: Collection[str] = (),
) -> Document:
    table = Table(headings, list(rows), set(headings[1:]), optional)
    return Document(headings[0], [table, *([] if code is None else [code])], plan, list(warnings))


def pasteable(commands: str) -> str:
    """Return commands as they are entered: each on its own line, those of MQSC with + where a line would be too long.
    They are joined by ", then ".
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


def size_document(config: StoreConfig, mix: Mix, *, data_set: bool = False) -> Document:
    """Return the plan of a store of an estate, as `mqtwin size` makes it. Of a structure it may be the shared message
    data set. UsageError: the store holds no messages, or has no data set, or the mix does not fit its kind.
    """
    match config:
        case Structure(known_by_levels=False) if data_set:
            return smds_document(plan_smds(config, mix))
        case Structure(known_by_levels=False):
            initial = config.init_size or config.size
            size = max(config.size, initial)
            init_size = initial if size != initial else None
            plans = plan_structure(config, mix, size, init_size)
            return structure_document(plans, rebuild_advice(config, mix, size), init_size, size)
        case PageSet() if not data_set:
            plan = plan_page_set(mix, packed=packs(config.version), allocated=config.pages)
            return page_set_document(plan, config, [])
        case QueueFile() if not data_set:
            return queue_file_document(plan_queue_file(config, mix, ()))
    kind = config.kind.replace("_", " ")
    expected = "a structure" if data_set else "a structure, page set or queue file that holds messages"
    raise UsageError(f"{config.name} is a {kind}; expected: {expected}")


def structure_document(
    plans: Sequence[StructurePlan], warnings: Iterable[str], init_size: int | None, size: int | None
) -> Document:
    """Return the plans of a structure. Sizes in bytes are those for which `fits_initially` and `fits` were computed."""
    headings = ["data", "ratio", "entries", "elements", "bytes", "SIZE"]
    if init_size:
        headings.append(f"fit in INITSIZE {format_size(init_size)}")
    if size:
        headings.append(f"fit in {'SIZE ' if init_size else ''}{format_size(size)}")
    rows = [
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
    return _document({"plans": plans}, headings, rows, warnings, optional={"bytes"})


def administration_document(plan: AdministrationPlan) -> Document:
    """Return the plan of an administration structure."""
    rows = [
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
    return _document(plan, headings, rows, plan.warnings)


def threshold_document(plan: ThresholdPlan) -> Document:
    """Return the plan of OFFLD3TH with its command."""
    rows = [
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
    code = None if plan.mqsc is None else Code("MQSC", plan.mqsc, pasteable(plan.mqsc))
    return _document(plan, headings, rows, plan.warnings, code)


def smds_document(plan: SmdsPlan) -> Document:
    """Return the plan of a shared message data set."""
    rows = [
        ["messages offloaded", f"{plan.messages:,}"],
        ["4 KB pages used", f"{plan.pages:,}"],
        ["message blocks", f"{plan.data_blocks:,}"],
        ["space map blocks", f"{plan.map_blocks:,}"],
        ["smallest data set", _extent_text(plan.least)],
        ["order this: does not expand", _extent_text(plan.unexpanded)],
        *([f"blocks used in {qmgr}'s data set", _used_text(pct)] for qmgr, pct in plan.used_pct.items()),
    ]
    return _document(plan, ["data set", f"DSBLOCK({format_size(plan.ds_block)})"], rows, plan.warnings)


def page_set_document(plan: PageSetPlan, config: PageSet | None, warnings: Iterable[str]) -> Document:
    """Return the plan of a page set. The page set is that of an estate, to compare with."""
    rows = [
        *map(_length_row, plan.lengths),
        ["message pages", f"{plan.pages:,}"],
        ["control pages", f"{plan.control_pages:,} ({plan.control_pct:.2f} %)"],
        ["smallest page set", _extent_text(plan.least)],
        ["order this: does not expand", _extent_text(plan.unexpanded)],
        [_BY_DOCUMENT[plan.packed], f"{plan.documented_records:,}"],
    ]
    if config is not None:
        rows.append([f"used of {config.name}, {usable_pages(config.pages):,} pages", _used_text(plan.used_pct or 0)])
    packing = "short messages share pages" if plan.packed else "one short message per page"
    headings = ["page set", f"{plan.messages:,} messages, {packing}"]
    return _document(plan, headings, rows, [*warnings, *plan.warnings])


_BY_DOCUMENT = {  # by whether short messages share pages, as the document's do
    True: "records by the document",
    False: "by the document, before MQ 7.0.1",
}


def _used_text(pct: float) -> str:
    """Return the share of a data set that is used; of one that is too small by how much: `39 times too small`."""
    return f"{pct:.1f} %" if pct <= _TOO_SMALL_PCT else f"{as_times(pct / 100)} too small"


def _length_row(group: LengthPlan) -> list[str]:
    formula = f"n = {group.n}, c = {group.c}, " if group.n else ""
    messages = f"{group.messages:,} {group.kind} messages of {format_size(group.length)}"
    return [messages, f"{formula}{group.bytes:,} bytes each"]


def scm_document(plans: Sequence[ScmPlan]) -> Document:
    """Return the plans of storage class memory, a column each."""
    rows = [
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
    return _document({"plans": plans}, ["SCM", *(plan.data for plan in plans)], rows, warnings)


def queue_file_document(plan: QueueFilePlan) -> Document:
    """Return the plan of a queue file."""
    rows = [
        ["blocks of 512 bytes", f"{plan.blocks:,}"],
        ["nonpersistent, buffer", f"{plan.nonpersistent_blocks:,}, {format_size(plan.nonpersistent_buffer)}"],
        ["persistent, buffer", f"{plan.persistent_blocks:,}, {format_size(plan.persistent_buffer)}"],
        ["overflow to the file", f"{plan.overflow_blocks:,}"],
        ["file", _rounded_size(plan.file_bytes)],
        [f"used of at most {format_size(plan.max_bytes)}", f"{plan.used_pct:.2f} %"],
        [f"memory of {plan.queues:,} open queues", _rounded_size(plan.memory_bytes)],
    ]
    return _document(plan, ["queue file", f"{plan.messages:,} messages"], rows, plan.warnings)


def cluster_document(plan: ClusterPlan) -> Document:
    """Return the plan of the cores of the job."""
    rows = [
        ["cores", f"{plan.cores:,}"],
        ["state partitions", f"{plan.partitions:,}"],
        ["a batch", f"{plan.batch_s:.2f} s"],
        *([f"- {name}", f"{seconds:.2f} s"] for name, seconds in plan.parts_s.items()),
        [
            f"one machine of {as_count(plan.machine_cores, 'core')}",
            "enough" if plan.is_one_machine else "not enough: a Spark cluster",
        ],
    ]
    traffic = f"{as_rate(plan.load.events_per_second)} events/s, {plan.load.content_type}"
    return _document(plan, [as_count(plan.load.stores, "store"), traffic], rows, plan.warnings)


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
