"""``mqtwin size``: the planning formulas of IBM's documents, those of the twin, and that of the job on a cluster.

First the options that its commands share.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, TypeVar

from cyclopts import App, Parameter
from cyclopts.validators import Number

from deploy.options.common import EstateFile, Flag, Repeated
from deploy.show.sizes import (
    administration_document,
    cluster_document,
    page_set_document,
    queue_file_document,
    scm_document,
    smds_document,
    structure_document,
    threshold_document,
)
from deploy.show.terminal import command_line, emit, print_warnings
from twin.base.errors import UsageError
from twin.base.units import as_count
from twin.capacity import has_rules
from twin.estate import Estate, PageSet, QueueFile, Structure, load_estate, parse_size
from twin.estate.advice import MAX_QMGRS
from twin.estate.model import facility_of, others_of, packs
from twin.sizing import (
    ClusterLoad,
    Mix,
    at_max_depth,
    backlog_of,
    bare_structure,
    parse_mix,
    parse_rates,
    parse_seconds,
    plan_administration,
    plan_cluster,
    plan_page_set,
    plan_queue_file,
    plan_scm,
    plan_smds,
    plan_structure,
    plan_threshold,
)
from twin.sizing.cluster import MAX_EVENTS_PER_SECOND, MAX_STORES, ContentType
from twin.sizing.mix import parse_count
from twin.sizing.structure import rebuild_advice

# --- shared options ---------------------------------------------------------------------------------------------------

Kind = TypeVar("Kind", Structure, PageSet, QueueFile)


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class SizeOptions:
    """The store of a plan, and the format of the output.

    Args:
        estate: Estate file (TOML): sizes, ratios, versions of a store.
        store: Store in the estate, such as QSG1/APP1 or QM01/PS04.
        json: Print JSON instead of text.
    """

    estate: EstateFile | None = None
    store: str | None = None
    json: Flag = False

    def load_store(self, kind: type[Kind], *, holds_queues: bool = True) -> tuple[Estate, Kind] | None:
        """Return the estate and its store of that kind; None without --estate. An administration structure holds no
        queues. UsageError: --estate or --store is missing, or the estate has no such store.
        """
        if self.estate is None:
            if self.store is not None:
                raise UsageError(f"--store {self.store} without --estate; expected: --estate, too")
            return None
        estate = load_estate(self.estate)
        fitting = {
            name: store
            for name, store in estate.stores.items()
            if isinstance(store, kind) and not (holds_queues and store.known_by_levels)
        }
        config = estate.stores.get(self.store or "")
        if isinstance(config, kind) and config.name not in fitting:
            raise UsageError(f"--store {config.name}: it holds no queues; expected: mqtwin size structure --admin")
        if not isinstance(config, kind):
            noun = kind.kind.replace("_", " ")
            expected = ", ".join(fitting) or f"an estate with a {noun}"
            raise UsageError(f"--store {self.store or 'is missing'}: no {noun} of {self.estate}; expected: {expected}")
        if estate.warnings:
            count = as_count(len(estate.warnings), "warning")
            command = command_line(["mqtwin", "estate", "check", str(self.estate)])
            print_warnings([f"{self.estate}: {count}, see {command}"])
        return estate, config

    def load_structure(self, size: str | None, *, needs_size: bool) -> tuple[Estate | None, Structure, int | None]:
        """Return the estate, the structure, and its size in bytes; None for what is unknown. UsageError: See
        `load_store`, or a required size is missing.
        """
        size_bytes = None if size is None else parse_size_option("--size", size)
        loaded = self.load_store(Structure)
        if loaded is None:
            if size_bytes is None and needs_size:
                raise UsageError("--size is missing; expected: a size such as 4G, or --estate and --store")
            return None, bare_structure(size_bytes or 0), size_bytes
        estate, config = loaded
        if size_bytes is None:
            return estate, config, config.init_size or config.size
        return estate, replace(config, size=size_bytes, init_size=None), size_bytes


def worst_case(estate: Estate | None, store: str, texts: tuple[str, ...]) -> tuple[Mix, list[str]]:
    """Return the messages of a store with each queue at its MAXDEPTH, and warnings; nothing without `texts`.
    UsageError: See `twin.sizing.at_max_depth`, or the estate is missing.
    """
    if not texts:
        return (), []
    if estate is None:
        raise UsageError(f"--at-max-depth {texts[0]}: give --estate and --store, whose queues have a max_depth")
    return at_max_depth(estate.stores[store].queues, estate.max_depths.get(store, {}), texts)


def parse_size_option(option: str, text: str) -> int:
    """Return the value of an option in bytes. UsageError: `text` is not a size above 0."""
    try:
        size_bytes = parse_size(text)
    except ValueError:
        size_bytes = 0
    if not size_bytes:
        raise UsageError(f"{option} {text}; expected: bytes, or a number with K, M, G or T, such as 4G")
    return size_bytes


def scm_of_facility(estate: Estate | None, config: Structure) -> tuple[int | None, int]:
    """Return the SCM of a structure's coupling facility, and the total SCMMAXSIZE of its other structures, in bytes.

    The first is None if it is unknown.
    """
    facility = None if estate is None else facility_of(estate.stores, config)
    if estate is None or facility is None:
        return None, 0
    committed = sum(other.scm_max_size or 0 for other in others_of(estate.stores, config, facility))
    return (facility.scm or 0) if facility.size is not None else None, committed


# --- commands ---------------------------------------------------------------------------------------------------------

size = App(name="size")

_DEFAULTS = SizeOptions()


@size.command
def structure(
    *,
    messages: Repeated = (),
    at_max_depth: Repeated = (),
    size: str | None = None,
    admin: Flag = False,
    queue_managers: Annotated[int | None, Parameter(validator=Number(gte=1, lte=MAX_QMGRS))] = None,
    cflevel: Annotated[int | None, Parameter(validator=Number(gte=1, lte=99))] = None,
    options: SizeOptions = _DEFAULTS,
) -> None:
    """Plan the SIZE of a structure for a number of messages; with --size also how many messages fit.

    With --admin the administration structure of a queue-sharing group, CSQ_ADMIN, for its queue managers.

    Args:
        messages: LENGTH:COUNT, such as 64K:5000; may be repeated. Without COUNT, equal shares of a mix.
        at_max_depth: LENGTH, or QUEUE=LENGTH, of the messages of the store's queues at their MAXDEPTH; may be repeated.
        size: SIZE of the structure, for the number of messages that fit.
        admin: Plan the administration structure, which holds no messages.
        queue_managers: With --admin: their number, also those that are down. Default: those of the store's group.
        cflevel: With --admin: CFLEVEL of the coupling facility (D CF). Default: that of the store's, else the largest.
        options: Store and output format.
    """
    if admin:
        if messages or at_max_depth or size:
            raise UsageError("--admin: the administration structure holds no messages; expected: --queue-managers")
        _plan_admin(queue_managers, cflevel, options)
        return
    if queue_managers is not None or cflevel is not None:
        raise UsageError("--queue-managers and --cflevel without --admin; expected: --admin, or --messages")
    estate, config, allocated = options.load_structure(size, needs_size=False)
    deepest, unknown = worst_case(estate, config.name, at_max_depth)
    mix = parse_mix(messages) + deepest
    # With an estate `config.size` is SIZE, and what is allocated at first may be less: INITSIZE.
    size_bytes = config.size if allocated and config.size > allocated else allocated
    init_size = allocated if size_bytes != allocated else None
    plans = plan_structure(config, mix, size_bytes, init_size)
    advice = rebuild_advice(config, mix, size_bytes) if size_bytes else []
    emit(structure_document(plans, [*unknown, *advice], init_size, size_bytes), as_json=options.json)


def _plan_admin(queue_managers: int | None, cflevel: int | None, options: SizeOptions) -> None:
    loaded = options.load_store(Structure, holds_queues=False)
    config = None
    if loaded is not None:
        estate, config = loaded
        facility = facility_of(estate.stores, config)
        cflevel = facility.cflevel if cflevel is None and facility is not None else cflevel
        queue_managers = queue_managers or len(config.queue_managers)
        config = config if config.is_administration else None
    if queue_managers is None:
        raise UsageError("--queue-managers is missing; expected: their number, or --estate and --store")
    emit(administration_document(plan_administration(queue_managers, cflevel, config)), as_json=options.json)


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
    messages = parse_count(backlog)
    if messages is None:
        raise UsageError(f"--backlog {backlog}; expected: a number of messages from 1, such as 5000000 or 5M")
    plan = plan_threshold(config, messages, aim)
    emit(threshold_document(plan), as_json=options.json)


@size.command
def cluster(
    *,
    rate: str,
    stores: str,
    content_type: ContentType = "json",
    latency: Annotated[float, Parameter(validator=Number(gt=0, lte=3600))] = 1.0,
    machine_cores: Annotated[int, Parameter(validator=Number(gte=1, lte=1024))] = 16,
    json: Flag = False,
) -> None:
    """Plan the cores of the job: how many, the duration of a batch, and whether one machine is enough.

    Args:
        rate: Events per second, such as 500000 or 0.5M.
        stores: Number of stores.
        content_type: Format of the records, as for `mqtwin publish`.
        latency: Largest duration of a batch, seconds.
        machine_cores: Cores of one machine.
        json: Print JSON instead of text.
    """
    load = ClusterLoad(
        events_per_second=_parse_number("--rate", rate, MAX_EVENTS_PER_SECOND),
        stores=_parse_number("--stores", stores, MAX_STORES),
        content_type=content_type,
    )
    plan = plan_cluster(load, latency_s=latency, machine_cores=machine_cores)
    emit(cluster_document(plan), as_json=json)


def _parse_number(option: str, text: str, largest: int) -> int:
    number = parse_count(text)
    if number is None or number > largest:
        raise UsageError(f"{option} {text}; expected: a number from 1 to {largest:,}, such as 5000 or 5K")
    return number


@size.command
def smds(*, messages: Repeated = (), ds_block: str | None = None, options: SizeOptions = _DEFAULTS) -> None:
    """Plan the shared message data set of a queue manager for the messages that it puts.

    Args:
        messages: LENGTH:COUNT, such as 64K:5000; may be repeated.
        ds_block: DSBLOCK, 8K to 1M. Default: that of the store, else 256K.
        options: Store and output format.
    """
    loaded = options.load_store(Structure)
    config = loaded[1] if loaded else bare_structure(0)
    plan = plan_smds(config, parse_mix(messages), parse_size_option("--ds-block", ds_block) if ds_block else None)
    emit(smds_document(plan), as_json=options.json)


@size.command
def page_set(
    *,
    messages: Repeated = (),
    at_max_depth: Repeated = (),
    rate: Repeated = (),
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
    emit(page_set_document(plan, loaded[1] if loaded else None, unknown), as_json=options.json)


@size.command
def scm(
    *, messages: Repeated = (), size: str | None = None, scm_total: str | None = None, options: SizeOptions = _DEFAULTS
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
    emit(scm_document(plans), as_json=options.json)


@size.command
def queue_file(
    *,
    messages: Repeated = (),
    persistent: Repeated = (),
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
    config = loaded[1] if loaded else QueueFile(name="/NAME", queue_manager="", queue="NAME")
    plan = plan_queue_file(
        config, parse_mix(messages) if messages else (), parse_mix(persistent) if persistent else (), queues
    )
    emit(queue_file_document(plan), as_json=options.json)
