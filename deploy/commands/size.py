"""``mqtwin size``: the planning formulas of IBM's documents, and those of the twin."""

from __future__ import annotations

from typing import Annotated

from cyclopts import App, Parameter
from cyclopts.validators import Number

from deploy.options.sizes import SizeOptions, parse_size_option, scm_of_facility, worst_case
from deploy.show.sizes import extent_text, print_plan, rounded_size
from twin.capacity.offload_rules import has_rules
from twin.errors import UsageError
from twin.estate import PageSet, QueueFile, Structure, format_size
from twin.estate.model import packs
from twin.sizing import (
    backlog_of,
    bare_structure,
    parse_mix,
    parse_rates,
    parse_seconds,
    plan_page_set,
    plan_queue_file,
    plan_scm,
    plan_smds,
    plan_structure,
    plan_threshold,
)
from twin.sizing.mix import Mix, parse_count
from twin.sizing.page_set import PageSetPlan, usable_pages
from twin.sizing.structure import fill_by_rules, offload_all_commands, rebuilt_for_offload

size = App(name="size")

_Repeated = Annotated[tuple[str, ...], Parameter(negative="", show_default=False)]
_DEFAULTS = SizeOptions()


@size.command
def structure(
    *,
    messages: _Repeated = (),
    at_max_depth: _Repeated = (),
    size: str | None = None,
    options: SizeOptions = _DEFAULTS,
) -> None:
    """Plan the SIZE of a structure for a number of messages; with --size also how many messages fit.

    Args:
        messages: LENGTH:COUNT, such as 64K:5000; may be repeated. Without COUNT, equal shares of a mix.
        at_max_depth: LENGTH, or QUEUE=LENGTH, of the messages of the store's queues at their MAXDEPTH; may be repeated.
        size: SIZE of the structure, for the number of messages that fit.
        options: Store and output format.
    """
    estate, config, allocated = options.load_structure(size, needs_size=False)
    deepest, unknown = worst_case(estate, config.name, at_max_depth)
    mix = parse_mix(messages) + deepest
    # With an estate `config.size` is SIZE, and what is allocated at first may be less: INITSIZE.
    size_bytes = config.size if allocated and config.size > allocated else allocated
    init_size = allocated if size_bytes != allocated else None
    plans = plan_structure(config, mix, size_bytes, init_size)
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
    if size_bytes:
        headings.append(f"fit in {'SIZE ' if init_size else ''}{format_size(size_bytes)}")
    advice = _rebuild_advice(config, mix, size_bytes) if size_bytes else []
    print_plan({"plans": plans}, headings, lines, unknown + advice, {"bytes"}, as_json=options.json)


def _rebuild_advice(config: Structure, mix: Mix, size_bytes: int) -> list[str]:
    """Return the advice to offload everything and rebuild, where more messages fit then and are asked for."""
    rebuilt = rebuilt_for_offload(config, mix, size_bytes)
    fits = int(fill_by_rules(config, size_bytes, mix)[0])
    is_known = any(part.count > 1 for part in mix)
    if rebuilt is None or (is_known and sum(part.count for part in mix) <= fits):
        return []
    condition = f"{rebuilt:,} fit instead of {fits:,} if all data is offloaded and the data sets have room"
    return [f"{condition}: {offload_all_commands(config)}"]


@size.command
def threshold(
    *,
    backlog: str,
    size: str | None = None,
    aim: Annotated[int | None, Parameter(validator=Number(gte=1, lte=100))] = None,
    options: SizeOptions = _DEFAULTS,
) -> None:
    """Plan OFFLD3TH for a known number of messages, with the MQSC command that sets it.

    Args:
        backlog: Messages that must fit when all are offloaded, such as 5000000 or 5M.
        size: SIZE of the structure.
        aim: Maximum usage of SIZE, percent. Default: 90, or 100 where only that leaves "around 80%", as in the
            document.
        options: Store and output format.
    """
    _, config, _ = options.load_structure(size, needs_size=True)
    messages = _parse_backlog(backlog)
    plan = plan_threshold(config, messages, aim)
    model_maximum = "none" if plan.pools_latest is None else str(plan.pools_latest)
    lines = [
        ["0.75 KB per message", f"{plan.needed / 10**6:,.2f} MB"],
        ["share of SIZE, document's units", f"{plan.documented_pct:.2f} %"],
        ["share of SIZE, in bytes", f"{plan.exact_pct:.2f} %"],
        ["maximum OFFLD3TH", str(plan.latest)],
        [f"OFFLD3TH for up to {plan.aim} % usage", f"around {plan.threshold} (exactly {plan.aimed:.2f})"],
        ["entries used, by the model", f"{plan.ents_pct:.2f} %"],
        ["elements used, by the model", f"{plan.elems_pct:.2f} %"],
        ["maximum OFFLD3TH, by the model", model_maximum],
        *([] if plan.mqsc else [["MQSC", "none: give a larger SIZE"]]),
    ]
    headings = ["threshold", f"{messages:,} messages in {format_size(plan.size)}"]
    print_plan(plan, headings, lines, plan.warnings, commands=plan.mqsc, as_json=options.json)


def _parse_backlog(text: str) -> int:
    messages = parse_count(text)
    if messages is None:
        raise UsageError(f"--backlog {text}; expected: a number of messages from 1, such as 5000000 or 5M")
    return messages


@size.command
def smds(*, messages: _Repeated = (), ds_block: str | None = None, options: SizeOptions = _DEFAULTS) -> None:
    """Plan the shared message data set of a queue manager for the messages that it puts.

    Args:
        messages: LENGTH:COUNT, such as 64K:5000; may be repeated.
        ds_block: DSBLOCK, 8K to 1M. Default: that of the store, else 256K.
        options: Store and output format.
    """
    loaded = options.load_store(Structure)
    config = loaded[1] if loaded else bare_structure(0)
    plan = plan_smds(config, parse_mix(messages), parse_size_option("--ds-block", ds_block) if ds_block else None)
    lines = [
        ["messages offloaded", f"{plan.messages:,}"],
        ["4 KB pages used", f"{plan.pages:,}"],
        ["message blocks", f"{plan.data_blocks:,}"],
        ["space map blocks", f"{plan.map_blocks:,}"],
        ["smallest data set", extent_text(plan.least)],
        ["smallest that does not expand", extent_text(plan.unexpanded)],
        *([f"blocks used in {qmgr}'s data set", f"{pct:.1f} %"] for qmgr, pct in plan.used_pct.items()),
    ]
    headings = ["data set", f"DSBLOCK({format_size(plan.ds_block)})"]
    print_plan(plan, headings, lines, plan.warnings, as_json=options.json)


@size.command
def page_set(
    *,
    messages: _Repeated = (),
    at_max_depth: _Repeated = (),
    rate: _Repeated = (),
    delay: str | None = None,
    mq_version: str | None = None,
    options: SizeOptions = _DEFAULTS,
) -> None:
    """Plan the pages and cylinders of a page set for a mix of messages and for delayed gets.

    Args:
        messages: LENGTH:COUNT at the maximum depth of the queues; may be repeated.
        at_max_depth: LENGTH, or QUEUE=LENGTH, of the messages of the store's queues at their MAXDEPTH; may be repeated.
        rate: LENGTH:PER_SECOND of puts during the delay; may be repeated.
        delay: Maximum delay of gets, such as 2h.
        mq_version: Version of the queue manager, such as 9.4. Before 7.0.1 short messages share pages.
        options: Store and output format.
    """
    if bool(rate) != (delay is not None):
        raise UsageError("--rate and --delay belong together; expected: both, or neither")
    loaded = options.load_store(PageSet)
    version = mq_version or (loaded[1].version if loaded else None)
    estate, store = (loaded[0], loaded[1].name) if loaded else (None, "")
    deepest, unknown = worst_case(estate, store, at_max_depth)
    mix = parse_mix(messages) + deepest + (backlog_of(parse_rates(rate), parse_seconds(delay)) if delay else ())
    plan = plan_page_set(mix, packed=packs(version), allocated=loaded[1].pages if loaded else None)
    lines = [
        *_length_lines(plan),
        ["message pages", f"{plan.pages:,}"],
        ["control pages", f"{plan.control_pages:,} ({plan.control_pct:.2f} %)"],
        ["smallest page set", extent_text(plan.least)],
        ["smallest that does not expand", extent_text(plan.unexpanded)],
        ["records by the document", f"{plan.documented_records:,}"],
    ]
    if loaded:
        config = loaded[1]
        lines.append([f"used of {config.name}, {usable_pages(config.pages):,} pages", f"{plan.used_pct:.1f} %"])
    packing = "short messages share pages" if plan.packed else "one short message per page"
    headings = ["page set", f"{plan.messages:,} messages, {packing}"]
    print_plan(plan, headings, lines, [*unknown, *plan.warnings], as_json=options.json)


def _length_lines(plan: PageSetPlan) -> list[list[str]]:
    lines = []
    for group in plan.lengths:
        formula = f"n = {group.n}, c = {group.c}, " if group.n else ""
        messages = f"{group.messages:,} {group.kind} messages of {format_size(group.length)}"
        lines.append([messages, f"{formula}{group.bytes:,} bytes each"])
    return lines


@size.command
def scm(
    *, messages: _Repeated = (), size: str | None = None, scm_total: str | None = None, options: SizeOptions = _DEFAULTS
) -> None:
    """Plan storage class memory for a backlog larger than the structure, with the CFRM statement that defines it.

    Args:
        messages: LENGTH:COUNT of the whole backlog, such as 2048:5000000; may be repeated.
        size: SIZE of the structure.
        scm_total: SCM of the coupling facility, for a warning if SCMMAXSIZE over-commits it.
        options: Store and output format.
    """
    estate, config, _ = options.load_structure(size, needs_size=True)
    total, committed = scm_of_facility(estate, config)
    if scm_total is not None:
        total = parse_size_option("--scm-total", scm_total)
    mix = parse_mix(messages)
    plans = [
        plan_scm(config, mix, total, committed, offloaded=offloaded)
        for offloaded in ((False, True) if has_rules(config) else (False,))
    ]
    lines = [
        ["entries (without SCM)", *(f"{plan.ents_max:,} ({plan.ents_without:,})" for plan in plans)],
        ["elements (without SCM)", *(f"{plan.elems_max:,} ({plan.elems_without:,})" for plan in plans)],
        ["messages in structure", *(f"{plan.in_structure:,}" for plan in plans)],
        ["messages in SCM", *(f"{plan.in_scm:,}" for plan in plans)],
        ["SCM used", *(rounded_size(plan.scm_used) for plan in plans)],
        ["SCMMAXSIZE", *(format_size(plan.scm_max_size) if plan.scm_max_size else "none" for plan in plans)],
        ["fixed augmented space", *(rounded_size(plan.aug_fixed) for plan in plans)],
        ["dynamic augmented space", *(rounded_size(plan.aug_dynamic) for plan in plans)],
        ["storage of the CF", *(rounded_size(plan.cf_storage) for plan in plans)],
        ["CFRM", *(plan.cfrm for plan in plans)],
    ]
    warnings = [f"{plan.data}: {warning}" for plan in plans for warning in plan.warnings]
    headings = ["SCM", *(plan.data for plan in plans)]
    print_plan({"plans": plans}, headings, lines, warnings, as_json=options.json)


@size.command
def queue_file(
    *,
    messages: _Repeated = (),
    persistent: _Repeated = (),
    queues: Annotated[int, Parameter(validator=Number(gte=1, lte=10**6))] = 1,
    options: SizeOptions = _DEFAULTS,
) -> None:
    """Plan the file of a distributed queue, what its buffers hold of it, and the memory of open queues like it.

    Args:
        messages: LENGTH:COUNT of nonpersistent messages at the maximum depth; may be repeated.
        persistent: LENGTH:COUNT of persistent messages; may be repeated.
        queues: Number of open queues like it, for their memory.
        options: Store and output format.
    """
    if not messages and not persistent:
        raise UsageError("--messages or --persistent is missing; expected: LENGTH:COUNT, such as 2K:5000")
    loaded = options.load_store(QueueFile)
    config = loaded[1] if loaded else QueueFile(name="/name", queue_manager="", queue="name")
    plan = plan_queue_file(
        config, parse_mix(messages) if messages else (), parse_mix(persistent) if persistent else (), queues
    )
    lines = [
        ["blocks of 512 bytes", f"{plan.blocks:,}"],
        ["nonpersistent, buffer", f"{plan.nonpersistent_blocks:,}, {format_size(plan.nonpersistent_buffer)}"],
        ["persistent, buffer", f"{plan.persistent_blocks:,}, {format_size(plan.persistent_buffer)}"],
        ["overflow to the file", f"{plan.overflow_blocks:,}"],
        ["file", rounded_size(plan.file_bytes)],
        [f"used of at most {format_size(plan.max_bytes)}", f"{plan.used_pct:.2f} %"],
        [f"memory of {plan.queues:,} open queues", rounded_size(plan.memory_bytes)],
    ]
    headings = ["queue file", f"{plan.messages:,} messages"]
    print_plan(plan, headings, lines, plan.warnings, as_json=options.json)
