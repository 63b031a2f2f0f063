"""The state record of each kind of store, as in the state topic.

A record is written with all fields, in the order of its struct. Null is a usage that was neither counted nor measured,
or what a store does not have. Fields with a default are those that records of version 0.1.0 lack. `make schemas` writes
the texts below the fields into docs/state.md and schemas/state.schema.json.
"""

from __future__ import annotations

import re
from datetime import UTC, timedelta, tzinfo
from math import inf
from typing import Annotated, Literal, TypeVar

import msgspec
from msgspec import UNSET, UnsetType

from twin.base.errors import UsageError
from twin.base.units import abbreviation, as_local, event_time, in_zone
from twin.records.bounds import (
    Count,
    MeasuredCount,
    MeasuredDataSetBlocks,
    MeasuredDataSetPages,
    MeasuredMessages,
    MeasuredNumber,
    MeasuredPct,
    MeasuredSetPages,
    Number,
    Share,
    Text,
    Time,
)

ExpandStatus = Literal["NORMAL", "FAILED", "MAXIMUM"]
Baseline = dict[str, object]  # what was measured beyond the model, by field
Positive = Annotated[int, msgspec.Meta(ge=1)]
DRAIN_S = 300  # in which `getters_wanted` empty a queue
_SURE = 0.9  # probability to last until Monday, from which a store is not told of
_MOST_SEEN = 4  # sentences about what is reported of a store


class DeepQueue(msgspec.Struct, frozen=True, kw_only=True):
    """One of the ten deepest queues, with [facts](events.md#queues-measured) that DISPLAY QSTATUS shows of it.

    A fact that is not known, or too old, is absent.
    """

    name: str
    """Name of the queue."""
    depth: MeasuredMessages
    """Messages; where puts and gets are not reported, as measured."""
    bytes: Count | None
    """Sum of `length`; null: only the depth is known."""
    puts_per_s: Number | UnsetType = UNSET
    """Messages that applications asked to put per second in the last 15 to 30 minutes of event time; absent: its puts
    and gets are not reported."""
    gets_per_s: Number | UnsetType = UNSET
    """Messages got per second, likewise; 0 once none was got for a minute."""
    getters: MeasuredMessages | UnsetType = UNSET
    """Handles open for input (IPPROCS), of a shared queue those of all members."""
    putters: MeasuredMessages | UnsetType = UNSET
    """Handles open for output (OPPROCS), likewise."""
    oldest_s: MeasuredCount | UnsetType = UNSET
    """Age of the oldest message when it was measured (MSGAGE), seconds."""
    last_get: Time | UnsetType = UNSET
    """When a message was last got (LGETDATE, LGETTIME)."""
    last_put: Time | UnsetType = UNSET
    """When a message was last put (LPUTDATE, LPUTTIME)."""
    uncommitted: MeasuredMessages | UnsetType = UNSET
    """Uncommitted puts and gets (UNCOM)."""
    measured_at: Time | UnsetType = UNSET
    """When the last of these facts was measured."""
    unread_since: Time | UnsetType = UNSET
    """First of the measurements in a row that found no handle open for input."""
    asked: tuple[str, ...] | UnsetType = UNSET
    """Queue managers that answered about its handles."""

    @property
    def drain_s(self) -> float | None:
        """Seconds in which its getters empty it as fast as they get now, if nothing more is put; inf: they do not get.

        None: it is not known how fast they get.
        """
        if self.gets_per_s is UNSET:
            return None
        return self.depth / self.gets_per_s if self.gets_per_s else inf

    @property
    def getters_wanted(self) -> float | None:
        """Handles open for input that empty it within `DRAIN_S` while puts go on, each as fast as those of now.

        None: it is not known how many there are, or how fast they get.
        """
        if self.getters is UNSET or self.gets_per_s is UNSET or self.puts_per_s is UNSET:
            return None
        if not self.getters or not self.gets_per_s:
            return None
        return self.getters * (self.puts_per_s + self.depth / DRAIN_S) / self.gets_per_s


class SizePair(msgspec.Struct, frozen=True, kw_only=True):
    """A size whose last measurement differs from the twin."""

    twin: Count
    """The size in the twin."""
    measured: Count
    """The size as measured."""


class TimeToFull(msgspec.Struct, frozen=True, kw_only=True):
    """Seconds until full, given that the resource becomes full."""

    p10: Number
    """Quantile 0.1."""
    p50: Number
    """The median."""
    p90: Number
    """Quantile 0.9."""


def is_full_now(p50: float) -> bool:
    """Return True if a resource counts as full already. p50: seconds until full."""
    return p50 < 1


class ResourceForecast(msgspec.Struct, frozen=True, kw_only=True):
    """The forecast for one resource."""

    resource: str
    """The resource, as in alerts."""
    usage_pct: Number
    """Percentage in use; of a data set, of its maximum size."""
    full_probability: Share
    """Probability that it becomes full within the horizon."""
    time_to_full_s: TimeToFull | None
    """Seconds until full, given that it becomes full; null: not within the horizon."""

    @property
    def is_full_now(self) -> bool:
        """True if the resource counts as full already."""
        return self.time_to_full_s is not None and is_full_now(self.time_to_full_s.p50)


class StateForecast(msgspec.Struct, frozen=True, kw_only=True):
    """The forecast of a store."""

    time: Time
    """Event time of its computation."""
    resources: Annotated[tuple[ResourceForecast, ...], msgspec.Meta(min_length=1)]
    """The resource that is full first, then others that may be; where none is full within the horizon, the fullest."""


class LongForecast(msgspec.Struct, frozen=True, kw_only=True):
    """The [long forecast](forecast.md#until-monday) of a store: from its own hours of up to four weeks."""

    time: Time
    """Event time of what it is made from, at most an hour ago."""
    until: Time
    """The next Monday, 08:00 in the site's zone."""
    lasts_probability: Share
    """Probability that nothing is full until then."""
    full_probability: Share
    """Probability that something is full within fourteen days."""
    time_to_full_s: TimeToFull | None
    """Seconds until full, given that it is full within fourteen days; null: it hardly is."""
    leak_pct_per_day: Number | None
    """Percentage points by which the least usage of a day rises from day to day; null: no such rise stands out."""

    @property
    def is_telling(self) -> bool:
        """True if people should read it: a leak, or a store that may well be full before Monday."""
        return self.leak_pct_per_day is not None or self.lasts_probability < _SURE

    def sentence_in(self, zone: tzinfo) -> str:
        """Return it in words, with times in a zone: `lasts until Mon 08:00 CET: 97 %`."""
        until = in_zone(self.until, zone)
        lasts = f"lasts until {until:%a %H:%M} {abbreviation(until)}: {100 * self.lasts_probability:.0f} %"
        if self.leak_pct_per_day is None:
            return lasts
        leaks = f"leaks {self.leak_pct_per_day:.1f} % a day"
        if self.time_to_full_s is None:
            return f"{lasts}, {leaks}"
        full = in_zone(self.time, zone) + timedelta(seconds=self.time_to_full_s.p50)
        return f"{lasts}, {leaks}, full about {full:%a %d %b}"


class PlannedWork(msgspec.Struct, frozen=True, kw_only=True):
    """A window of [planned work](planned-work.md)."""

    id: str
    """Its plan."""
    queue: str | None
    """The queue that it is about; null: the whole store."""
    begins: Time
    """Its beginning."""
    ends: Time
    """Its end."""
    announced: Positive | None
    """Messages that it puts; null: not announced."""
    seen: Count | None
    """Messages put in it so far; null: it has not begun."""
    getters_away: bool
    """True if the getters are away in it."""
    status: Literal["planned", "running", "exceeded", "over"]
    """`exceeded`: more is put, or more of the store is taken, than planned. `over` for an hour after its end."""


class SeenShare(msgspec.Struct, frozen=True, kw_only=True):
    """A share that events report, with the bounds of nine in ten."""

    share: Share
    """The most likely value, 0 to 1."""
    low: Share
    """Lower bound."""
    high: Share
    """Upper bound."""


class QueueCoverage(msgspec.Struct, frozen=True, kw_only=True):
    """How much of what happens to a queue events report, by its measured depths."""

    puts_seen: SeenShare | None
    """Share of the messages put; null: it has grown by fewer than 20."""
    gets_seen: SeenShare | None
    """Share of the messages got; null: it has shrunk by fewer than 20."""
    since: Time
    """Time of the first measurement that counts, later than a feed has begun or ended."""


class MeasuredLevels(msgspec.Struct, frozen=True, kw_only=True):
    """Measured levels of a store whose puts and gets nothing reports, which its forecast extends."""

    known: Count
    """Levels that can be extended, of the present rise where there is one; at most `needed`."""
    needed: Positive
    """Number from which a [forecast](forecast.md) can be made."""
    last: Time
    """Time of the last one."""
    is_recent: bool
    """False once a further one is overdue: no forecast is made then."""

    def lacking_in(self, zone: tzinfo) -> str:
        """Return why no forecast can be made, in words; "" if one can be: `not known yet, 3 of 5 levels`."""
        if self.known < self.needed:
            return f"not known yet, {self.known} of {self.needed} levels"
        return "" if self.is_recent else f"not known, no level since {as_local(self.last, zone, self.last)}"


class ProbabilityBin(msgspec.Struct, frozen=True, kw_only=True):
    """Looks of about the same probability."""

    looks: Positive
    """Looks of this probability."""
    full: Count
    """Those that were followed by full."""
    predicted: Share
    """Mean probability."""


class HorizonScore(msgspec.Struct, frozen=True, kw_only=True):
    """How good the probability to be full within a horizon was."""

    horizon_s: Positive
    """The horizon, seconds."""
    looks: Positive
    """Looks ahead that are settled, one in five minutes."""
    full: Count
    """Those after which the store was full within the horizon."""
    brier: Share
    """Mean squared error of the probability."""
    climatology: Share
    """The same of a rule that always predicts the share of looks that were followed by full."""
    bins: tuple[ProbabilityBin, ...]
    """By fifths of the probability, those with any looks."""

    @property
    def skill(self) -> float | None:
        """Share of the error of climatology that the forecast avoids; None where climatology has none."""
        return 1.0 - self.brier / self.climatology if self.climatology else None


class IntervalScore(msgspec.Struct, frozen=True, kw_only=True):
    """Intervals p10 to p90, as published in the last hour before full while full was likely."""

    count: Count
    """Number of intervals."""
    inside: Count
    """Those that contained the time of full."""
    coverage: Share | None
    """Share of them; 0.8 if the intervals are right; null without any."""
    width: Annotated[float, msgspec.Meta(ge=0.5, le=3)]
    """Factor by which the next ones are wider, a [correction](forecast.md#correction-by-outcomes); 1: as they are."""


class PageScore(msgspec.Struct, frozen=True, kw_only=True):
    """Pages about queues and filling."""

    right: Count
    """Five minutes or more before full, or with a queue at its MAXDEPTH."""
    late: Count
    """Later than that."""
    false: Count
    """Over without a put refused."""
    saved: Count | UnsetType = UNSET
    """The same, and [useful](incidents.md#one-word-back) in the word of people; absent: none."""


class PageWords(msgspec.Struct, frozen=True, kw_only=True):
    """[What people say](incidents.md#one-word-back) of the last 32 pages of a store's forecast, in one situation."""

    situation: Literal["asked", "asked-keeping-up", "clear", "turned", "keeping-up", "usual"]
    """asked: what fills passed its threshold; clear: nobody reads it; turned: rises like it have turned back, or little
    was in use; keeping-up: getters got almost as much as was put; usual: anything else."""
    useful: Count
    """Pages that were useful, or on which somebody acted."""
    useless: Count
    """Pages that were useless."""
    needed_pct: Number
    """Probability of full, percent, from which such a page calls now."""


class ForecastScores(msgspec.Struct, frozen=True, kw_only=True):
    """Outcomes of the forecasts and pages of a store in the last 30 days of event time."""

    days: Annotated[int, msgspec.Meta(ge=1, le=30)]
    """Days (UTC) since the first outcome counted, the present one included."""
    horizons: tuple[HorizonScore, ...]
    """Of the probability to be full within 15, 30, 60 and 120 minutes, as far as `forecast_horizon_s` reaches."""
    intervals: IntervalScore
    """Intervals p10 to p90, as published in the last hour before full while full was likely."""
    pages: PageScore
    """Pages about queues and filling."""


class PutDemand(msgspec.Struct, frozen=True, kw_only=True):
    """Demand of applications, puts refused with 2192, 2056 or 2053 included."""

    puts_per_s: Number
    """Messages per second in the last 15 minutes of event time, or since the first event."""

    @property
    def units_per_s(self) -> dict[str, float]:
        """Storage that these messages take per second, by unit: elements, pages or blocks."""
        names = (name for name in self.__struct_fields__ if name != "puts_per_s")
        return {name.removesuffix("_per_s"): getattr(self, name) for name in names}


class ElementDemand(PutDemand, frozen=True, kw_only=True):
    """Demand of a structure."""

    elements_per_s: Number
    """Elements that these take per second as the offload rules in force place them."""


class PageDemand(PutDemand, frozen=True, kw_only=True):
    """Demand of a page set."""

    pages_per_s: Number
    """Pages that these take per second."""


class BlockDemand(PutDemand, frozen=True, kw_only=True):
    """Demand of a queue file."""

    blocks_per_s: Number
    """Blocks of 512 bytes that these take per second."""


class StateRecord(msgspec.Struct, frozen=True, kw_only=True):
    """The fields that the state record of every kind has; a record of a kind that is not known here has only these."""

    store: str
    """Name of the store, the key of the record."""
    kind: str
    """structure, page_set, queue_file, coupling_facility, uniform_cluster or queue_manager."""
    site: Text | UnsetType = UNSET
    """[Site](estate.md#site) of the job's estate; absent: it has no name."""
    time: Time | None
    """Latest event time; null before the first event."""
    messages: MeasuredMessages | None
    """Messages that hold storage, including uncommitted puts and gets and the rest of a measured baseline."""
    messages_estimated: Count = 0
    """Further messages of a baseline of which only pages or blocks were measured: one for each that is left."""
    bytes: MeasuredCount | None
    """Sum of `length` of the messages held, without the baseline."""
    uncommitted: MeasuredMessages | None
    """Messages whose put or get is not yet committed."""
    in_doubt: MeasuredMessages | None
    """Those whose unit of work is in doubt: prepared, and neither committed nor backed out."""
    expired_held: MeasuredMessages | None
    """Messages past their [expiry](events.md#expiry) that still hold storage."""
    queues: Annotated[tuple[DeepQueue, ...], msgspec.Meta(max_length=10)]
    """The ten deepest queues."""
    events: MeasuredCount
    """Events applied, without duplicates and dead letters."""
    duplicates: MeasuredCount
    """Events with a sequence number seen before."""
    gaps: MeasuredCount
    """Sequence numbers currently missing."""
    unmatched_gets: MeasuredCount
    """Held gets, whose message has not arrived, and expired ones."""
    full_puts: MeasuredCount
    """Messages refused with reason 2192, or 2056 of a distributed queue manager."""
    queue_full_puts: MeasuredCount
    """Messages refused with reason 2053: their queue was at its MAXDEPTH."""
    overfull_puts: MeasuredCount
    """Messages that the real system accepted although the model had no room; stored, except those beyond
    [what a twin keeps](storage-model.md#what-a-twin-keeps)."""
    refused_alters: MeasuredCount
    """ALTER and REBUILD events that changed nothing, and refused attempts of automatic alter."""
    baseline: Baseline | None
    """Excess of the first MEASURE over the model, or of the last one with resync, then with `resynced_at` and
    `dropped_messages`; null before it, and in it for what was not measured."""
    measured: tuple[str, ...] = ()
    """Fields that come from [measurements](#not-measured), sorted; those of a data set as `smds/QM01/blocks_used`."""
    drift_pct: float | None
    """Twin minus measurement in percent of the total, for the worst resource; null before a MEASURE."""
    fidelity: Share | None = None
    """Share of the measurements of the last 24 hours that the twin [matched](#fidelity) within its tolerance; null:
    fewer than ten tested it."""
    coverage: dict[str, QueueCoverage] | None = None
    """By queue, how much of its puts and gets events report, where measurements show that they are a
    [sample](feeds-joined.md); null: complete, or not known."""
    sizes_measured: dict[str, dict[str, SizePair]] = {}
    """By resource and field, sizes whose last measurement differs from the twin, which could not take them over."""
    limits_unknown: tuple[str, ...] = ()
    """Resources that expand up to a limit that the estate does not describe (`max_pages`, `max_size` of a data set): it
    counts as MQ's own, which is no room to count on; and data sets that it does not describe at all."""
    levels: MeasuredLevels | None = None
    """Measured levels of a store whose puts and gets nothing reports, or that is taken over again and again; null
    otherwise, and before a resync."""
    plans: tuple[PlannedWork, ...] | UnsetType = UNSET
    """[Planned work](planned-work.md) of the next 24 hours and the last one; absent: there is none."""
    long_forecast: LongForecast | UnsetType = UNSET
    """The [long forecast](forecast.md#until-monday); absent: fewer than two days are known."""
    words: tuple[PageWords, ...] | UnsetType = UNSET
    """[What people say](incidents.md#one-word-back) of its pages, by situation; absent: nothing."""
    forecast: StateForecast | None
    """The [forecast](#fields-of-a-forecast); null if nothing rises, or flows or levels are not yet known. While puts
    are refused: full now."""
    forecast_scores: ForecastScores | None = None
    """Outcomes of the forecasts and pages of the last 30 days; null before anything is settled, and of shared
    stores."""

    @property
    def lacks_levels(self) -> str:
        """Why no forecast can be made, in words; "" if one can be."""
        return self.lacks_levels_in(UTC)

    def lacks_levels_in(self, zone: tzinfo) -> str:
        """Return the same, with times in a zone."""
        return "" if self.levels is None else self.levels.lacking_in(zone)

    @property
    def seen(self) -> tuple[str, ...]:
        """Sentences on what events report of puts and gets, where that is a part; those with the least first."""
        shares = [
            (share.share, f"{100 * share.share:.0f} % of the {calls} of {queue} are seen")
            for queue, own in (self.coverage or {}).items()
            for calls, share in (("puts", own.puts_seen), ("gets", own.gets_seen))
            if share is not None
        ]
        return tuple(text for _, text in sorted(shares)[:_MOST_SEEN])

    @property
    def lacks_limits(self) -> str:
        """Which limits are not known, in words: `limit not known: smds/QM01`; "" if all are."""
        return f"limit not known: {', '.join(self.limits_unknown)}" if self.limits_unknown else ""

    @property
    def first(self) -> ResourceForecast | None:
        """The forecast for the resource that is full first; None without a forecast."""
        return self.forecast.resources[0] if self.forecast is not None else None

    @property
    def rising(self) -> ResourceForecast | None:
        """The same; None too where nothing is full within the horizon."""
        return None if self.first is None or self.first.time_to_full_s is None else self.first


class DataSetState(msgspec.Struct, frozen=True, kw_only=True):
    """A shared message data set, named as in DISPLAY USAGE TYPE(SMDS) and SMF 115 QESD."""

    blocks_total: MeasuredDataSetBlocks
    """Blocks of DSBLOCK, space map included."""
    blocks_max: MeasuredDataSetBlocks
    """Blocks after all expansions that it can still make, by DSEXPAND, secondary allocation and what its volumes hold;
    `blocks_total` if it cannot expand."""
    blocks_used: MeasuredDataSetBlocks | None
    """Blocks that hold a page, space map included."""
    pages_used: MeasuredDataSetPages | None
    """Pages of 4 KB in use."""
    messages: MeasuredMessages | None
    """Messages in it."""
    status: ExpandStatus
    """EXPANDST."""


class ScmState(msgspec.Struct, frozen=True, kw_only=True):
    """The storage class memory of a structure, named as in RMF and SMF 74.4."""

    max: MeasuredCount
    """Maximum for the structure, bytes: SCMMAXSIZE, or its share of the coupling facility's SCM if that is smaller,
    until its puts show that [others leave more or less](storage-model.md#scm-that-others-use)."""
    used: MeasuredCount | None
    """Bytes in use, in 4 KB blocks."""
    ents: MeasuredCount | None
    """List entries in it, which `ents_used` leaves out."""
    elems: MeasuredCount | None
    """Data elements in it, which `elems_used` leaves out."""
    messages: MeasuredMessages | None
    """Messages in it."""
    aug_fixed: MeasuredCount
    """Fixed augmented space of the coupling facility, bytes."""
    aug_dynamic: MeasuredCount | None
    """Dynamic augmented space, bytes."""
    prestaged: MeasuredCount
    """Messages moved out, in total."""
    prefetched: MeasuredCount
    """Messages brought back, in total."""
    faults: MeasuredCount
    """Gets of a message in it, in total."""
    fault_wait_s: Number
    """Wait time of the faults by `scm_read_us`, seconds."""


_PENDING = {
    "properties": {
        "size": {"type": "integer", "minimum": 1},
        **{name: {"type": ["integer", "null"], "minimum": 1} for name in ("init_size", "scm_max_size")},
        "coupling_facility": {"type": ["string", "null"]},
    },
    "additionalProperties": True,
}


class StructureState(StateRecord, frozen=True, kw_only=True):
    """The state record of a structure."""

    kind: Literal["structure"] = "structure"
    size: MeasuredCount
    """Current size in bytes, initially INITSIZE."""
    ents_max: MeasuredCount | None
    """List entries in total; null of a structure that
    [holds no queues](storage-model.md#structures-that-hold-no-queues) until they are measured."""
    ents_used: MeasuredCount | None
    """List entries in use, without those in SCM: ENTSUSED of DISPLAY CFSTATUS."""
    elems_max: MeasuredCount | None
    """Data elements of 256 bytes in total; null as `ents_max`."""
    elems_used: MeasuredCount | None
    """Data elements in use, without those in SCM; null, too, where DISPLAY CFSTATUS is all that is known."""
    elems_low: MeasuredCount | None
    """Lower bound of `elems_used`, where lengths are [means](#elements-known-as-an-interval); else `elems_used`."""
    elems_high: MeasuredCount | None
    """Upper bound of `elems_used`, likewise."""
    usage_pct: MeasuredPct | None
    """The larger percentage of entries and elements, SIZEUSED if the latter are null; above 100 after overfull puts."""
    alterable: bool
    """False only while data is in SCM or dynamic augmented space is in use: size and ratio cannot be altered. MQSC
    ALTER CFSTRUCT is taken in any case."""
    policy_pending: Annotated[dict[str, int | str | None], msgspec.Meta(extra_json_schema=_PENDING)] | None
    """Attributes of the estate's CFRM policy that wait for a REBUILD, with their values (null: removed); null: none."""
    auto_alters: MeasuredCount | None
    """Times that automatic alter changed size or ratio; null without ALLOWAUTOALT(YES)."""
    offloaded_messages: MeasuredMessages | None
    """Messages held whose data are in a data set or in Db2."""
    offloaded_bytes: MeasuredCount | None
    """Sum of their lengths."""
    offload_rule: Annotated[MeasuredCount, msgspec.Meta(le=3)]
    """The highest active offload rule whose threshold is exceeded; 0: none."""
    demand: ElementDemand | None = None
    """[Demand](#demand) of applications; null: nothing was counted."""
    smds: dict[str, DataSetState]
    """[Data sets](#fields-of-a-data-set) by queue manager."""
    scm: ScmState | None
    """[Storage class memory](#fields-of-storage-class-memory); null if the structure has none."""


class PageSetState(StateRecord, frozen=True, kw_only=True):
    """The state record of a page set."""

    kind: Literal["page_set"] = "page_set"
    pages_total: MeasuredSetPages
    """4 KB pages for messages, without header page and space map: unused + persistent + nonpersistent."""
    pages_used: MeasuredSetPages | None
    """Pages in use."""
    pages_persistent: MeasuredSetPages | None
    """Pages with a persistent message."""
    pages_nonpersistent: MeasuredSetPages | None
    """Pages with nonpersistent messages only."""
    pages_unused: MeasuredSetPages | None
    """Free pages; 0 after overfull puts."""
    pages_max: MeasuredSetPages
    """Pages for messages after all expansions that it can still make; `pages_total` if it cannot expand."""
    usage_pct: MeasuredPct | None
    """Percentage of pages in use; above 100 after overfull puts."""
    expansions: MeasuredCount
    """Number of expansions; at most 119."""
    status: ExpandStatus
    """FAILED: the last expansion failed; MAXIMUM: 119 expansions, or 64 GB. With EXPAND(NONE) it stays NORMAL."""
    demand: PageDemand | None = None
    """[Demand](#demand) of applications; null: nothing was counted."""
    buffer_pool: MeasuredCount
    """Number of the buffer pool."""
    buffer_pool_pct: MeasuredPct | None
    """Percentage of the buffer pool in use, as last measured; null before."""
    buffer_pool_writes: Literal["none", "asynchronous", "synchronous"] | None
    """Writes of MQ at that percentage: asynchronous from 85 %, synchronous from 95 %; null before it is measured."""


class QueueFileState(StateRecord, frozen=True, kw_only=True):
    """The state record of a queue file."""

    kind: Literal["queue_file"] = "queue_file"
    blocks: MeasuredCount | None
    """Blocks of 512 bytes, of both buffers and the file: free + allocated + nonpersistent + persistent."""
    blocks_free: MeasuredCount | None
    """Free blocks in the buffers."""
    blocks_allocated: MeasuredCount | None
    """"Free and allocated": blocks of the file without data, which it keeps until it is truncated; those before the
    last block with data stay then too."""
    blocks_nonpersistent: MeasuredCount | None
    """Blocks with nonpersistent data, in buffer or file."""
    blocks_persistent: MeasuredCount | None
    """Blocks with persistent data, in buffer or file."""
    file_bytes: MeasuredCount | None
    """Size of the file, with the checkpoints that its own log records cause: 512 x blocks with data in the file, and
    allocated ones."""
    file_max_bytes: MeasuredCount
    """Maximum size of the file in whole blocks: `max_size`, or the space in its file system."""
    usage_pct: MeasuredPct | None
    """Blocks of the file with data, in percent of the maximum; above 100 after overfull puts."""
    demand: BlockDemand | None = None
    """[Demand](#demand) of applications; null: nothing was counted."""
    log_records: MeasuredCount
    """Log records written for this queue."""
    checkpoints: MeasuredCount
    """Checkpoints that its own log records cause; those of all queues are in the record of the queue
    manager."""
    truncations: MeasuredCount
    """Truncations of the file, at those checkpoints and CLEARs."""


class ScmShare(msgspec.Struct, frozen=True, kw_only=True):
    """SCM that a structure uses of its coupling facility, bytes."""

    scm_used: Count | None
    """In use; null until it has reported."""
    scm_left: Count | None
    """Bytes that it may still take as the others stand now: SCMMAXSIZE, or what they leave; null as `scm_used`."""


class StorageShare(msgspec.Struct, frozen=True, kw_only=True):
    """Storage that a structure has of its coupling facility, bytes."""

    size: Count
    """Allocated."""
    size_max: Count
    """SIZE, to which it may grow."""
    growth_left: Count | None
    """Growth that is [possible](storage-model.md#storage-that-structures-may-grow-into) if it alone asks: up to SIZE,
    and what is free; null if that is not known."""


class CouplingFacilityState(StateRecord, frozen=True, kw_only=True):
    """The state record of a coupling facility."""

    kind: Literal["coupling_facility"] = "coupling_facility"
    scm_total: MeasuredCount
    """SCM installed, bytes."""
    scm_committed: MeasuredCount
    """Sum of SCMMAXSIZE of its structures, bytes."""
    scm_used: MeasuredCount | None
    """SCM in use by all of them, bytes; null until one has reported."""
    storage_total: Count | None = None
    """Its storage, bytes; null if the estate does not give its size."""
    storage_promised: Count | None = None
    """Sum of what its structures may have, bytes: SIZE of all, those of the CFRM policy that are no stores included,
    augmented space and dump space."""
    storage_free: MeasuredCount | None
    """Bytes used neither by structures (as allocated) nor by augmented space nor by dump space; null if the estate does
    not give its size."""
    storage_measured: Count | None = None
    """Its free storage by the last MEASURE that had it, bytes; null before."""
    augmented: MeasuredCount
    """Augmented space, fixed and dynamic, bytes."""
    structures: dict[str, ScmShare]
    """SCM of each structure that has some, bytes."""
    storage: dict[str, StorageShare] = {}
    """Storage of each structure, bytes."""
    late_reports: Count
    """Reports that were read minutes after those of others, when their tick had been processed."""


class HostState(msgspec.Struct, frozen=True, kw_only=True):
    """A host of a uniform cluster."""

    members: Count
    """Active members on it."""
    capacity: Number
    """Messages per second that its CPU carries."""
    cpu_pct: Number
    """Estimated CPU for these messages, percent; within 5 percentage points in the published test."""


class UniformClusterState(StateRecord, frozen=True, kw_only=True):
    """The state record of a uniform cluster."""

    kind: Literal["uniform_cluster"] = "uniform_cluster"
    members: MeasuredCount | None
    """Queue managers with a put or get in the last minute."""
    rate: MeasuredNumber | None
    """Messages put per second by all members, over the last minute."""
    load: Number | None = None
    """`rate`, and what it takes to deliver the waiting messages in 15 minutes."""
    capacity: MeasuredNumber | None
    """Messages per second that those members can deliver: `members` times `messages_per_second`, or less where a host
    is full."""
    usage_pct: MeasuredPct | None = None
    """`load` in percent of `capacity`."""
    members_needed: Annotated[MeasuredCount, msgspec.Meta(extra_json_schema={"minimum": 1})] | None
    """Members that carry the load."""
    hosts: dict[str, HostState]
    """Of each host on which the estate places members."""
    depth: MeasuredMessages | None
    """Messages waiting in their queues."""
    late_reports: Count
    """Reports that were read minutes after those of others, when their tick had been processed."""


class FileSize(msgspec.Struct, frozen=True, kw_only=True):
    """The size of the file of a queue."""

    name: str
    """Name of the queue."""
    bytes: Count
    """Size of its file."""


class QueueManagerState(StateRecord, frozen=True, kw_only=True):
    """The state record of a distributed queue manager: its log and checkpoints."""

    kind: Literal["queue_manager"] = "queue_manager"
    log_records: MeasuredCount
    """Log records of all its queues; the end of a unit of work over several queues is one."""
    checkpoints: MeasuredCount
    """Checkpoints taken."""
    records_to_replay: MeasuredCount | None
    """Log records since the last checkpoint, which a restart replays."""
    truncations: MeasuredCount
    """Files truncated at its checkpoints."""
    file_bytes: MeasuredCount | None
    """Size of all its queue files after its checkpoints."""
    files: Annotated[tuple[FileSize, ...], msgspec.Meta(max_length=10)]
    """The ten largest queue files."""
    late_reports: Count
    """Reports that were read minutes after those of others, when their tick had been processed."""


MessageStoreState = StructureState | PageSetState | QueueFileState
STATES: dict[str, type[StateRecord]] = {
    "structure": StructureState,
    "page_set": PageSetState,
    "queue_file": QueueFileState,
    "coupling_facility": CouplingFacilityState,
    "uniform_cluster": UniformClusterState,
    "queue_manager": QueueManagerState,
}


_State = TypeVar("_State", bound=StateRecord)


class StatesByKind:
    """States of stores, each with the type of its kind, so that an editor and mypy know its fields."""

    __slots__ = ()

    def state(self, store: str) -> StateRecord:
        """Return the state record of a store. UsageError: there is none."""
        raise NotImplementedError

    def structure(self, store: str) -> StructureState:
        """Return the state record of a structure. UsageError: there is none, or it is of another kind. So do all."""
        return self._of_kind(store, StructureState)

    def page_set(self, store: str) -> PageSetState:
        """Return the state record of a page set."""
        return self._of_kind(store, PageSetState)

    def queue_file(self, store: str) -> QueueFileState:
        """Return the state record of a queue file."""
        return self._of_kind(store, QueueFileState)

    def coupling_facility(self, store: str) -> CouplingFacilityState:
        """Return the state record of a coupling facility."""
        return self._of_kind(store, CouplingFacilityState)

    def uniform_cluster(self, store: str) -> UniformClusterState:
        """Return the state record of a uniform cluster."""
        return self._of_kind(store, UniformClusterState)

    def queue_manager(self, store: str) -> QueueManagerState:
        """Return the state record of a distributed queue manager."""
        return self._of_kind(store, QueueManagerState)

    def _of_kind(self, store: str, kind: type[_State]) -> _State:
        state = self.state(store)
        if not isinstance(state, kind):
            raise UsageError(f'{store} is a {state.kind.replace("_", " ")}; expected: {state.kind}("{store}")')
        return state


class _Kind(msgspec.Struct, frozen=True):
    """The field that says which fields a record has."""

    kind: str


_HUGE = re.compile(rb"[:,\[]\s*-?[0-9]{20,}")  # beyond 64 bits: it could be read, and neither computed with nor written
_kind_decoder = msgspec.json.Decoder(_Kind)
_decoders = {kind: msgspec.json.Decoder(state) for kind, state in STATES.items()}
_other_decoder = msgspec.json.Decoder(StateRecord)


def read_state_record(value: bytes) -> StateRecord:
    """Return the state record of the kind that it names, those of version 0.1.0 too; fields unknown here are ignored.

    Raises:
        Exception: it is not a state record, or its time is invalid; a foreign record may raise any.
    """
    if _HUGE.search(value):
        raise ValueError("a number has more digits than any that is counted")
    state = _decoders.get(_kind_decoder.decode(value).kind, _other_decoder).decode(value)
    for time in (state.time, state.forecast.time if state.forecast is not None else None):
        if time is not None:
            event_time(time)
    return state
