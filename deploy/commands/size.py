"""``mqtwin size``: the planning arithmetic of the documents, and that of the twin beside it."""

from __future__ import annotations

from typing import Annotated

from cyclopts import App, Parameter
from cyclopts.validators import Number

from deploy.show.sizes import human, in_words, tell
from deploy.size_options import Planned, scm_of, size_of
from twin.errors import UsageError
from twin.estate import PageSet, Structure, format_size
from twin.estate.model import packs
from twin.sizing import (
    backlog_of,
    bare_structure,
    parse_mix,
    parse_rates,
    parse_seconds,
    plan_page_set,
    plan_scm,
    plan_smds,
    plan_structure,
    plan_threshold,
)
from twin.sizing.page_set import PageSetPlan, usable_pages
from twin.sizing.structure import has_rules

size = App(name="size")

_Repeated = Annotated[tuple[str, ...], Parameter(negative="")]
_PLAIN = Planned()


@size.command
def structure(*, messages: _Repeated = (), size: str | None = None, of: Planned = _PLAIN) -> None:
    """SIZE of a structure for so many messages, or with --size how many it holds.

    Args:
        messages: LENGTH:COUNT, as 64K:5000; may be repeated. Without a count, shares of a mix.
        size: SIZE of the structure: also say how many messages of the mix fit.
        of: See Planned.
    """
    _, config, given = of.structure(size, needed=False)
    plans = plan_structure(config, parse_mix(messages), given)
    headings = ["data", "ratio", "entries", "elements", "bytes", "SIZE"]
    lines = [
        [
            plan.data,
            f"1:{plan.ratio}" if plan.ratio else "",
            f"{plan.entries:,}",
            f"{plan.elements:,}" if plan.elements is not None else "",
            f"{plan.bytes:,}",
            format_size(plan.size_rounded),
            *([f"{plan.fits:,}"] if plan.fits is not None else []),
        ]
        for plan in plans
    ]
    tell(of, {"plans": plans}, headings + ([f"fit in {format_size(given)}"] if given else []), lines)


@size.command
def threshold(
    *,
    backlog: Annotated[int, Parameter(validator=Number(gte=1, lte=10**12))],
    size: str | None = None,
    aim: Annotated[int, Parameter(validator=Number(gte=1, lte=100))] = 90,
    of: Planned = _PLAIN,
) -> None:
    """OFFLD3TH for a predetermined number of messages, with the MQSC text that sets it.

    Args:
        backlog: Messages that must fit once everything is offloaded.
        size: SIZE of the structure.
        aim: Percent of SIZE that may be used in the end.
        of: See Planned.
    """
    _, config, _ = of.structure(size, needed=True)
    plan = plan_threshold(config, backlog, aim)
    pools = "none" if plan.pools_latest is None else f"{plan.pools_latest} or lower"
    lines = [
        ["0.75 KB a message", f"{plan.needed / 10**6:,.2f} MB"],
        ["of SIZE, as the document counts", f"{plan.documented_pct:.2f} %"],
        ["of SIZE, bytes against bytes", f"{plan.exact_pct:.2f} %"],
        ["OFFLD3TH at the latest", f"{plan.latest} or lower"],
        [f"OFFLD3TH to use at most {plan.aim} %", f"around {plan.threshold} (exactly {plan.aimed:.2f})"],
        ["entries they take, by the model", f"{plan.ents_pct:.2f} %"],
        ["elements they take, by the model", f"{plan.elems_pct:.2f} %"],
        ["OFFLD3TH that the model needs", pools],
        ["MQSC", plan.mqsc],
    ]
    tell(of, plan, ["threshold", f"{backlog:,} messages in {format_size(plan.size)}"], lines, plan.warnings)


@size.command
def smds(*, messages: _Repeated = (), ds_block: str | None = None, of: Planned = _PLAIN) -> None:
    """The shared message data set of one queue manager for the messages it puts.

    Args:
        messages: LENGTH:COUNT, as 64K:5000; may be repeated.
        ds_block: DSBLOCK, 8K to 1M.
        of: See Planned.
    """
    found = of.described(Structure)
    config = found[1] if found else bare_structure(0)
    plan = plan_smds(config, parse_mix(messages), size_of("--ds-block", ds_block) if ds_block else None)
    lines = [
        ["messages offloaded", f"{plan.messages:,}"],
        ["4 KB pages in use", f"{plan.pages:,}"],
        ["blocks of messages", f"{plan.data_blocks:,}"],
        ["blocks of the space map", f"{plan.map_blocks:,}"],
        ["data set that just holds them", in_words(plan.least)],
        ["data set that does not expand", in_words(plan.unexpanded)],
        *([f"blocks used of that of {qmgr}", f"{pct:.1f} %"] for qmgr, pct in plan.used_pct.items()),
    ]
    tell(of, plan, ["data set", f"DSBLOCK({format_size(plan.ds_block)})"], lines, plan.warnings)


@size.command
def page_set(
    *,
    messages: _Repeated = (),
    rate: _Repeated = (),
    delay: str | None = None,
    mq_version: str | None = None,
    of: Planned = _PLAIN,
) -> None:
    """Pages and cylinders of a page set for a mix of messages, and for gets that are delayed.

    Args:
        messages: LENGTH:COUNT, the greatest depth of its queues; may be repeated.
        rate: LENGTH:PER_SECOND that is put while nobody gets; may be repeated.
        delay: How long gets may be delayed, as 2h.
        mq_version: Of the queue manager, as 9.4; before 7.0.1 short messages share pages.
        of: See Planned.
    """
    if bool(rate) != (delay is not None):
        raise UsageError("--rate and --delay: both are right, or neither")
    found = of.described(PageSet)
    version = mq_version or (found[1].version if found else None)
    mix = parse_mix(messages) + (backlog_of(parse_rates(rate), parse_seconds(delay)) if delay else ())
    plan = plan_page_set(mix, packed=packs(version), allocated=found[1].pages if found else None)
    lines = [
        *_length_lines(plan),
        ["pages of messages", f"{plan.pages:,}"],
        ["control pages", f"{plan.control_pages:,} ({plan.control_pct:.2f} %)"],
        ["page set that just holds them", in_words(plan.least)],
        ["page set that does not expand", in_words(plan.unexpanded)],
        ["records by the document", f"{plan.documented_records:,}"],
    ]
    if found:
        lines.append([f"of the {usable_pages(found[1].pages):,} usable of {found[1].name}", f"{plan.used_pct:.1f} %"])
    how = "short messages share pages" if plan.packed else "one short message a page"
    tell(of, plan, ["page set", f"{plan.messages:,} messages, {how}"], lines, plan.warnings)


def _length_lines(plan: PageSetPlan) -> list[list[str]]:
    return [
        [
            f"{one.messages:,} {one.kind} of {format_size(one.length)}",
            f"n = {one.n}, c = {one.c}, {one.bytes:,} bytes each" if one.n else f"{one.bytes:,} bytes each",
        ]
        for one in plan.lengths
    ]


@size.command
def scm(
    *, messages: _Repeated = (), size: str | None = None, scm_total: str | None = None, of: Planned = _PLAIN
) -> None:
    """Storage class memory for a backlog beyond the structure, with the CFRM text that gives it.

    Args:
        messages: LENGTH:COUNT of the whole backlog, as 2048:5000000; may be repeated.
        size: SIZE of the structure.
        scm_total: SCM of the coupling facility: warn where SCMMAXSIZE over-commits it.
        of: See Planned.
    """
    estate, config, _ = of.structure(size, needed=True)
    total, committed = scm_of(estate, config)
    if scm_total is not None:
        total = size_of("--scm-total", scm_total)
    mix = parse_mix(messages)
    plans = [
        plan_scm(config, mix, total, committed, offloaded=offloaded)
        for offloaded in ((False, True) if has_rules(config) else (False,))
    ]
    lines = [
        ["entries, without SCM", *(f"{plan.ents_max:,}, {plan.ents_without:,}" for plan in plans)],
        ["elements, without SCM", *(f"{plan.elems_max:,}, {plan.elems_without:,}" for plan in plans)],
        ["messages that stay", *(f"{plan.in_structure:,}" for plan in plans)],
        ["messages in SCM", *(f"{plan.in_scm:,}" for plan in plans)],
        ["SCM in use", *(human(plan.scm_used) for plan in plans)],
        ["SCMMAXSIZE", *(format_size(plan.scm_max_size) if plan.scm_max_size else "none" for plan in plans)],
        ["augmented space, fixed", *(human(plan.aug_fixed) for plan in plans)],
        ["augmented space, dynamic", *(human(plan.aug_dynamic) for plan in plans)],
        ["storage of the CF", *(human(plan.cf_storage) for plan in plans)],
        ["CFRM", *(plan.cfrm for plan in plans)],
    ]
    warnings = [f"{plan.data}: {warning}" for plan in plans for warning in plan.warnings]
    tell(of, {"plans": plans}, ["SCM", *(plan.data for plan in plans)], lines, warnings)
