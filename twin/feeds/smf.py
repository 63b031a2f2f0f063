"""SMF 115 and 116 of MQ to events.

- QIS1 (115/201): MEASURE of a page set. QESD (115/2): MEASURE of a shared message data set. QPST (115/215): the usage
  of a buffer pool, measured for the page sets that use it.
- QQST (115/216), or with `flows="accounting"` WQ (116 class 3): puts, gets and bytes per queue. QQST since MQ 9.3.1:
  what DISPLAY QSTATUS shows of queues, a MEASURE of each store and record.
- QEST (115/2): peaks of entries and elements. They come from the list calls of one queue manager only, so 0 says
  nothing and another value is a lower bound: never a measurement.
- QMST (115/2): calls of the queue manager, to compare with the sum of its queues.
- R744SREQ (74/4, RMF): MEASURE of a structure, R744GSRG of a coupling facility (`twin.feeds.smf_layout`).

An event's time is the STORE CLOCK value of QWHS, which is UTC; the local times of the header are not used.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Generator, Iterator
from hashlib import blake2b
from typing import cast

from typing_extensions import override

from kernels.page_set import allocated_pages
from twin.base.units import FIRST_SECOND
from twin.events import Event, Measured
from twin.events.fields import MEASURED_QUEUE, DataSetMeasured
from twin.feeds.intake import Complaint, Intake, Item
from twin.feeds.intervals import Flows, Puts, backed_out_later, net
from twin.feeds.measurements import AHEAD_US, FacilityLevels, QueueStatus, measures_of
from twin.feeds.protocol import NOT_BY_TIME, Feed, FeedOptions, Page, Streams
from twin.feeds.smf_layout import (
    QEST,
    QEST_HEADER,
    QEST_SLOT,
    QQST_PARTIAL,
    QQST_SHARED,
    QQST_UNCOMMITTED,
    SECTIONS,
    WQ_NO_MINIMUM,
    BufferPool,
    Calls,
    DataSetUsage,
    FacilityRecord,
    PageSetUsage,
    QueueStatistics,
    QueueUse,
    SectionValues,
    TaskTimes,
)
from twin.feeds.smf_records import Segments, SmfRecord, records, whole_records

_METHODS = {1: "USER", 2: "SYSTEM", 3: "NONE"}  # QIS1 [IBM: mq-golang, MQUSAGE_EXPAND_USER ...]
_MAX_INTERVAL_US = 24 * 3600 * 1_000_000  # STATIME is at most 999 minutes
_MAX_DIGESTS = 200_000  # of records, to notice a second copy
_MAX_POOLS = 10_000  # (queue manager, pool) of which the page sets are known
_NO_AGE = 0xFFFFFFFF  # of the oldest message: not known
_STATUS = {1: "defined and never used", 2: "offline", 3: "not defined", 4: "suspended"}  # QIS1 [IBM: MQUSAGE_PS_...]


class SmfFeed(Feed):
    """Reader of SMF data sets, and of streams, of each of which it keeps the segments of one record."""

    reads = "SMF 115 or 116 of MQ, or 74 subtype 4 of RMF, transferred in binary"

    def __init__(self, intake: Intake, options: FeedOptions) -> None:
        super().__init__(intake, options)
        self.passed = NOT_BY_TIME
        self._streams = Streams(self, Segments)
        self._levels = FacilityLevels(intake, "SMF 74")
        self._digests: OrderedDict[bytes, None] = OrderedDict()
        self._pools: dict[tuple[str, int], set[int]] = {}  # page sets by queue manager and buffer pool
        self._lpars: dict[str, tuple[str, int]] = {}  # queue manager -> LPAR, end of its last interval
        self._statuses: dict[tuple[str, str], dict[str, tuple[int, QueueStatus]]] = {}  # by queue of the estate, member
        self._accounted = False  # records of the other source of puts and gets were seen

    @override
    def take(self, page: Page) -> Iterator[Item]:
        """Yield the events of a data set; damaged records are complaints."""
        for record in self._streams.take(page, lambda segments: records(page, segments)):
            if isinstance(record, FacilityRecord):
                self.object_count += 1
                yield from self._levels.record(record)
                continue
            if not isinstance(record, SmfRecord):
                self.object_count += isinstance(record, Complaint) and record.code == "damaged"  # a record of MQ
                yield record
                continue
            self.object_count += 1
            digest = blake2b(record.data[4:], digest_size=8).digest()
            if digest in self._digests:
                yield Complaint("copy", record.place, "the same record was read before; it counts once")
                continue
            self._digests[digest] = None
            if len(self._digests) > _MAX_DIGESTS:
                self._digests.popitem(last=False)
            yield from self._note_queue_manager(record)
            yield from self._events(record)

    @override
    def whole_bytes(self, data: bytes) -> int:
        return whole_records(data)

    @override
    def finish(self) -> Iterator[Item]:
        """Complain if segments are missing, or if puts and gets are those of the other source and this one had none."""
        yield from self._streams.finish()
        if self._accounted and not any(source == "QQST" for source, _, _ in self.intake.coverage):
            text = "puts and gets are in accounting records (116) only; expected: --flows accounting, or STATQ(ON)"
            yield Complaint("no-statistics", "SMF 116", text)

    def _note_queue_manager(self, record: SmfRecord) -> Iterator[Complaint]:
        self.intake.facts.add("queue_manager", record.qmgr, record.place, platform="zos")
        group = self._group(record)
        if group:
            self.intake.facts.add_member(group, record.qmgr, record.place)
        lpar, end = self._lpars.get(record.qmgr, (record.lpar, 0))
        if lpar != record.lpar and record.end - (record.duration_us or 0) < end:
            text = f"{record.qmgr} reports from {lpar} and {record.lpar} at once; expected: one queue manager per name"
            yield Complaint("two-lpars", record.place, text)
        self._lpars[record.qmgr] = record.lpar, max(end, record.end)

    def _group(self, record: SmfRecord) -> str:
        return record.group or self.intake.group_of(record.qmgr) or ""

    def _events(self, record: SmfRecord) -> Iterator[Item]:
        task: TaskTimes | None = None
        queues: list[QueueStatistics] = []
        for eyecatcher, data in record.sections:
            if eyecatcher == QEST:
                self._note_peaks(record, data)
            section = SECTIONS.get(eyecatcher)
            if section is None:
                continue
            if len(data) < section.min_bytes:
                text = f"section {eyecatcher} of {len(data)} bytes; expected: at least {section.min_bytes}"
                yield Complaint("damaged", record.place, text)
                continue
            values = section.read(data)
            if isinstance(values, TaskTimes):
                task = values
            else:
                yield from self._read(record, values, task, len(data))
            if isinstance(values, QueueStatistics):
                queues.append(values)
        yield from self._queue_states(record, queues)

    def _read(self, record: SmfRecord, values: SectionValues, task: TaskTimes | None, length: int) -> Iterator[Item]:
        """Yield the events of a section. task: the one before it; length: bytes of the section."""
        match values:
            case PageSetUsage():
                yield from self._page_set(record, values)
            case DataSetUsage():
                yield from self._data_set(record, values)
            case BufferPool():
                yield from self._buffer_pool(record, values)
            case QueueUse():
                yield from self._queue_accounting(record, values, task)
            case QueueStatistics():
                yield from self._queue_statistics(record, values, length)
            case Calls():
                interval = yield from self._interval(record)
                puts = values.puts + values.put1s
                self.intake.cover("QMST", record.qmgr, "*", interval, puts=puts, gets=values.gets)

    # --- measurements ------------------------------------------------------------------------------------------------

    def _page_set(self, record: SmfRecord, values: PageSetUsage) -> Iterator[Item]:
        number, total = values.page_set, values.total
        used = values.persistent + values.nonpersistent
        if number > 99 or values.unused + used != total:
            text = (
                f"page set {number} has {total} pages, {values.unused} unused and {used} used; "
                "expected: page set 0 to 99, and a total that is their sum"
            )
            yield Complaint("inconsistent", record.place, text)
            return
        if not total and not used:
            status = _STATUS.get(values.status or 0, "without pages")
            text = f"page set {number} of {record.qmgr} is {status} (QIS1 status {values.status}); not measured"
            yield from self.once(Complaint("offline", record.place, text), f"{record.qmgr}/{number}")
            return
        pool = values.buffer_pool
        if len(self._pools) < _MAX_POOLS:
            self._pools.setdefault((record.qmgr, pool), set()).add(number)
        self.intake.facts.add(
            "page_set",
            f"{record.qmgr}/{number}",
            record.place,
            pages=allocated_pages(total),
            buffer_pool=pool,
            expand=_METHODS.get(values.method),
        )
        measured: Measured = {
            "pages_total": total,
            "pages_unused": values.unused,
            "pages_persistent": values.persistent,
            "pages_nonpersistent": values.nonpersistent,
            "pages_used": used,
        }
        if values.expansions is not None:
            measured["expansions"] = values.expansions
        yield self._measure(record, f"{record.qmgr}/PS{number:02d}", measured)

    def _data_set(self, record: SmfRecord, values: DataSetUsage) -> Iterator[Item]:
        """Yield the MEASURE of a shared message data set of this queue manager.

        The blocks in use count those of the space map only if that makes the total of the fields true.
        """
        group, structure, total = self._group(record), values.structure, values.blocks_total
        if not total and not values.blocks_used:
            text = f"the SMDS of {record.qmgr} for {structure} is not open (QESD without blocks); not measured"
            yield from self.once(Complaint("offline", record.place, text), f"{record.qmgr}/{structure}")
            return
        if not group or not structure:
            text = f"{record.qmgr} has an SMDS of {structure!r} but no known queue-sharing group; expected: an estate"
            yield Complaint("no-group", record.place, text)
            self.intake.facts.ungrouped.add(record.qmgr)
            return
        used = values.blocks_used
        if used + values.blocks_free + values.blocks_map == total:
            used += values.blocks_map
        elif used + values.blocks_free != total:
            text = (
                f"SMDS of {structure}: {used} blocks in use, {values.blocks_free} free, {values.blocks_map} of "
                f"its space map; expected: {total}"
            )
            yield Complaint("inconsistent", record.place, text)
            return
        store = f"{group}/{structure}"
        self.intake.facts.add("structure", store, record.place, offload="SMDS")
        size = total * values.ci_size if values.ci_size >= 1 << 13 else None
        self.intake.facts.add("smds", f"{store}/{record.qmgr}", record.place, size=size)
        dataset: DataSetMeasured = {"blocks_total": total, "blocks_used": used, "messages": values.messages}
        yield self._measure(record, store, {"smds": {record.qmgr: dataset}})

    def _buffer_pool(self, record: SmfRecord, values: BufferPool) -> Iterator[Item]:
        pool, buffers, stealable = values.pool, values.buffers, values.stealable
        if stealable > buffers:
            text = f"buffer pool {pool} has {stealable} stealable buffers of {buffers}; expected: at most all"
            yield Complaint("inconsistent", record.place, text)
            return
        if not buffers:
            return
        pct = round(100.0 * (buffers - stealable) / buffers, 4)
        estate = self.intake.estate
        for number in sorted(self._pools.get((record.qmgr, pool), ())):
            store = f"{record.qmgr}/PS{number:02d}"
            if estate is None or store in estate.stores:
                yield self._measure(record, store, {"buffer_pool": pool, "buffer_pool_pct": pct})

    def _queue_states(self, record: SmfRecord, queues: list[QueueStatistics]) -> Iterator[Event]:
        """Yield what a record shows of queues of the estate, each queue once an interval.

        Handles, ages and times of a shared queue are those of one member: those of the others count as of their last
        interval, if it ends within two intervals of this one. The depth is that of the queue, as in QSTATUS.
        """
        estate, duration = self.intake.estate, record.duration_us or 0
        within = 2 * duration if duration <= _MAX_INTERVAL_US else 0
        facts: dict[str, dict[str, dict[str, QueueStatus]]] = {}  # by store, queue and queue manager
        for values in queues:
            route = None if estate is None else estate.queue_routes.get((record.qmgr, values.queue))
            if estate is None or route is None or values.input_handles is None:
                continue
            store, queue = estate.routes[route].store, str(estate.routes[route].queue)
            members = self._statuses.setdefault((store, queue), {})
            before, _ = members.pop(record.qmgr, (0, None))
            known = {name: status for name, (end, status) in members.items() if abs(end - record.end) <= within}
            status = _status_of(values, values.input_handles, record.end)
            members[record.qmgr] = record.end, status
            if before == record.end:
                continue
            if values.depth >= 0 and not values.flags & QQST_PARTIAL:
                status = {**status, "depth": values.depth}
            facts.setdefault(store, {})[queue] = {**known, record.qmgr: status}
        for store, by_queue in facts.items():
            base: Event = {"time": record.end, "qmgr": record.qmgr, "op": "MEASURE", "store": store}
            yield from measures_of(base, by_queue, estate.stores[store].queue_managers if estate else (), {})

    def _note_peaks(self, record: SmfRecord, data: bytes) -> None:
        group = self._group(record)
        for start in range(QEST_HEADER, len(data) - QEST_SLOT.min_bytes + 1, QEST_SLOT.min_bytes):
            values = QEST_SLOT.read(data[start : start + QEST_SLOT.min_bytes])
            if not values.structure:
                continue
            store = f"{group or '?'}/{values.structure}"
            self.intake.note_peak(store, record.end, values.max_entries, values.max_elements, values.full_count)
            if group:
                self.intake.facts.add("structure", store, record.place)

    # --- puts and gets -----------------------------------------------------------------------------------------------

    def _queue_statistics(self, record: SmfRecord, values: QueueStatistics, length: int) -> Iterator[Item]:
        """Yield the events of a queue and interval, as counted by this queue manager.

        A put to a waiting getter counts as put and as get [assumed, as for distributed queue managers]; it stored
        nothing and is nonpersistent.
        """
        if values.puts is None:
            text = (
                f"{record.qmgr} has QQST of {length} bytes, as of MQ 9.3.0 to 9.3.2, without counts of puts and gets; "
                "expected: MQ 9.3.3, or SMF 116 with --flows accounting"
            )
            yield from self.once(Complaint("no-counts", record.place, text), record.qmgr)
        queue = values.queue
        if not queue:
            return
        self._note_queue(record, queue, values, values.group)
        if values.flags & QQST_PARTIAL:
            yield Complaint("partial", record.place, f"{queue}: the interval is partial; its counts are taken")
        if values.puts is None:
            return
        if self.options.flows != "statistics":
            self._accounted = True
            return
        fast = min(values.fast_puts, values.puts_np + values.put1s_np)
        fast_bytes = min(values.fast_bytes, values.put_bytes_np + values.put1_bytes_np)
        puts = (
            Puts(
                count=values.puts_np + values.put1s_np - fast,
                bytes=values.put_bytes_np + values.put1_bytes_np - fast_bytes,
            ),
            Puts(count=values.puts_p + values.put1s_p, bytes=values.put_bytes_p + values.put1_bytes_p, persistent=True),
            Puts(count=fast, bytes=fast_bytes, direct=True),
        )
        start, end = yield from self._interval(record)
        flows = Flows(
            qmgr=record.qmgr,
            queue=queue,
            start=start,
            end=end,
            puts=net(puts, values.puts_backed_out),
            gets=max(0, values.gets - fast - values.gets_backed_out),
            expired=values.expired + backed_out_later(puts, values.puts_backed_out),
        )
        one_length = values.min_length is not None and values.min_length == values.max_length
        yield from self.flow_events("QQST", flows, record.place, is_one_length=one_length)

    def _note_queue(self, record: SmfRecord, queue: str, values: QueueStatistics | QueueUse, group: str = "") -> None:
        """Keep the store of a queue. group: queue-sharing group of the section; "": it names none."""
        facts, structure, page_set = self.intake.facts, values.structure, values.page_set
        if structure or (isinstance(values, QueueStatistics) and values.flags & QQST_SHARED):
            group = group or self._group(record)
            if group and structure:
                facts.add_member(group, record.qmgr, record.place)
                facts.add("structure", f"{group}/{structure}", record.place)
                facts.add("queue", f"{group}/{queue}", record.place, structure=structure)
        elif 0 <= page_set <= 99:
            facts.add("storage_class", f"{record.qmgr}/PS{page_set:02d}", record.place, page_set=page_set)
            facts.add("queue", f"{record.qmgr}/{queue}", record.place, storage_class=f"PS{page_set:02d}")

    def _queue_accounting(self, record: SmfRecord, values: QueueUse, task: TaskTimes | None) -> Iterator[Item]:
        """Yield the events of a queue that a task used; the interval is the task's, or from open to close.

        Puts to a waiting getter count as stored: their gets are in the record of another task and cannot be told apart.
        """
        queue = values.base_name or values.open_name
        if not queue:
            return
        self._note_queue(record, queue, values)
        if self.options.flows != "accounting":
            self._accounted |= bool(values.valid_puts or values.valid_gets)
            return
        persistent = min(values.puts_p + values.put1s_p, values.valid_puts)
        nonpersistent = values.valid_puts - persistent
        shares = _split(values.put_bytes, (nonpersistent, persistent))
        gets = values.valid_gets if values.destructive_gets is None else values.destructive_gets
        ends = ((task and task.end) or record.end, values.closed or record.end, record.end)
        end = min((time for time in ends if time > 0), default=record.end)
        start = max(task.start if task else 0, values.opened)
        if not 0 <= end - start <= _MAX_INTERVAL_US:
            text = f"{queue}: its interval is {end - start} microseconds; expected: 0 to 24 hours. Its end is taken"
            yield Complaint("interval", record.place, text)
            start = end
        flows = Flows(
            qmgr=record.qmgr,
            queue=queue,
            start=start,
            end=end,
            puts=(Puts(count=nonpersistent, bytes=shares[0]), Puts(count=persistent, bytes=shares[1], persistent=True)),
            gets=gets,
            expired=values.expired,
        )
        least, largest = values.min_length, values.max_length
        one_length = least == largest and least != WQ_NO_MINIMUM
        yield from self.flow_events("WQ", flows, record.place, is_one_length=one_length, is_common=False)

    # --- times -------------------------------------------------------------------------------------------------------

    @staticmethod
    def _interval(record: SmfRecord) -> Generator[Complaint, None, tuple[int, int]]:
        duration = record.duration_us or 0
        if duration > _MAX_INTERVAL_US:
            text = f"an interval of {duration} microseconds; expected: at most 24 hours. Its end is taken"
            yield Complaint("interval", record.place, text)
            duration = 0
        return record.end - duration, record.end

    @staticmethod
    def _measure(record: SmfRecord, store: str, measured: Measured) -> Event:
        return {"time": record.end, "qmgr": record.qmgr, "op": "MEASURE", "store": store, "measured": measured}


def _status_of(values: QueueStatistics, getters: int, end: int) -> QueueStatus:
    """Return what a section shows of its queue beside the depth; what cannot be is not known.

    An age of 0 is not known: it is 0 in a partial record too [IBM: MQ 9.4, Queue data records].
    """
    facts = {"getters": getters, "putters": values.output_handles}
    if values.oldest_age not in {0, _NO_AGE} and not values.flags & QQST_PARTIAL:
        facts["oldest_s"] = values.oldest_age
    if not values.flags & (QQST_PARTIAL | QQST_UNCOMMITTED):
        facts["uncommitted"] = 0
    facts = {name: value for name, value in facts.items() if value <= MEASURED_QUEUE[name]}
    times = {"last_put": values.last_put, "last_get": values.last_get}
    facts |= {name: time for name, time in times.items() if FIRST_SECOND * 1_000_000 <= time <= end + AHEAD_US}
    return cast("QueueStatus", facts)


def _split(total: int, counts: tuple[int, ...]) -> list[int]:
    """Return the shares of a total in proportion to counts; their sum is the total."""
    whole, done, shares = sum(counts), 0, []
    for count in counts:
        shares.append(0 if not whole else total * (done + count) // whole - total * done // whole)
        done += count
    return shares
