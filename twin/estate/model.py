"""Stores of an estate and their attributes, named as by IBM. `make schemas` writes the texts into docs/estate.md.

Sizes are integers, bytes. `None` stands for an absent attribute. Attributes that an MQSC or CFRM text leaves out get
IBM's defaults in `twin.estate.mqsc` and `twin.estate.cfrm`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, tzinfo
from functools import lru_cache
from typing import ClassVar, Literal

from typing_extensions import override

from twin.base.units import KIB, MIB, TIB, format_size, zone_of
from twin.estate.rows import (
    BYTES,
    FACILITY_NAME,
    HOST_NAME,
    PAGES,
    QMGR_NAME,
    YES_NO,
    Change,
    Config,
    Form,
    assumed,
    attribute,
    block_size,
    choice,
    described,
    in_bytes,
    mapped,
    names,
    number,
    on_disk,
    or_none_for_0,
    size,
    text,
    whole,
    with_unit,
)

RULE_OFF = 64 * KIB  # OFFLDnSZ(64K): the rule is off [IBM: MQ, Specifying offload options for shared messages]
ALWAYS_OFFLOADED_ABOVE = 63 * KIB  # bytes of data, 64,512 [published]
MAX_PAGES = 16_777_216  # 4 KB pages: 64 GB, the largest page set [published]
PRESTAGES_ABOVE_PCT = 90  # usage above which SCM is used, `kernels.scm.PRESTAGE_ABOVE` [IBM: How SCM works]
NO_SCM_FROM_CFLEVEL = 26  # of IBM z17: "Remove support for Coupling Facility Virtual Flash Memory" [IBM: CFCC Level 26]
FIXED_AUGMENTED = 8 * MIB  # bytes of a structure that is configured for SCM [assumed]
DYNAMIC_AUGMENTED_PPM = 20_000  # of the bytes in SCM, millionths [assumed]
SMDS_MAX_SIZE = 16 * TIB  # the largest shared message data set [published]
QUEUE_FILE_MAX_SIZE = 2_088_960 * MIB  # MAXFSIZE(DEFAULT) [IBM: MQ 9.1.5, Changing the size of a queue file]

FULL_THRESHOLD = 80  # percent, IBM's default of FULLTHRESHOLD
ADMINISTRATION = "CSQ_ADMIN"  # the administration structure of a queue-sharing group [IBM: MQ, message CSQE022E]
_GROUP_LETTERS = 4  # of a queue-sharing group in the CFRM policy [IBM MQ 9.2 DEFINE CFSTRUCT: padded with @]

DS_BLOCKS = {f"{1 << n}K": KIB << n for n in range(3, 10)} | {"1M": MIB}  # 8K, 16K ... 512K, 1M

BALANCED = "balanced"
POLICIES = {"quiet": 0.5, BALANCED: 1.5, "early": 4.0}  # needless calls that a saved filling is worth [assumed]
Offload = Literal["SMDS", "DB2", "NONE"]
_FACILITY = Form(FACILITY_NAME, FACILITY_NAME)
_RULE_SIZE = Form(size(0, RULE_OFF), with_unit(KIB, 0, 64, "K"), BYTES, lambda size: f"{size // KIB}K")
_BLOCK_SIZE = Form(block_size(DS_BLOCKS), mapped(DS_BLOCKS), BYTES)
_SCM_SIZE = Form(or_none_for_0(size(0)), size(1, unit="K"), BYTES)


def _megabytes(word: str) -> int:
    """Convert MAXFSIZE, DEFAULT or megabytes, to bytes [IBM: MQ 10.0, Modifying queue files]."""
    return QUEUE_FILE_MAX_SIZE if word == "DEFAULT" else int(with_unit(MIB, 1, 999_999_999, "")(word))


_FILE_SIZE = Form(size(1), _megabytes, BYTES, lambda size: str(size // MIB))


def group_prefix(group: str) -> str:
    """Return a queue-sharing group as names of its structures begin in the CFRM policy: four characters, or none."""
    return group.ljust(_GROUP_LETTERS, "@") if group else ""


def mqsc_name(name: str) -> str:
    """Return a name as MQSC takes it: it folds one without quotes to capitals [IBM: MQ, Rules for using MQSC]."""
    return name if name == name.upper() else f"'{name}'"


def policy_name_of(store: str) -> str:
    """Return the name of a structure in the CFRM policy: QSG1/APP1 is QSG1APP1, QS1/APP1 is QS1@APP1."""
    group, _, structure = store.rpartition("/")
    return group_prefix(group) + structure


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """The site of the estate."""

    name: str = ""
    """Name of the site, in its records; "": none."""
    zone: str = ""
    """Zone of the times that people read, such as "Europe/Berlin" or "+01:00"; without one they are UTC."""

    @property
    def clock(self) -> tzinfo:
        """The zone; UTC where this machine has none of its name."""
        try:
            return zone_of(self.zone)
        except ValueError:
            return UTC


@dataclass(frozen=True, slots=True)
class OffloadRule:
    """Offload rule: OFFLDnTH and OFFLDnSZ. Above `th` percent usage, data of more than `sz` bytes is offloaded."""

    number: int
    th: int
    sz: int

    @property
    def off(self) -> bool:
        """True if OFFLDnSZ(64K) switches the rule off."""
        return self.sz >= RULE_OFF


@described
class Smds(Config):
    """Shared message data set of a queue manager for a structure. One without a description has 16 TB."""

    size: int = attribute(on_disk(1, SMDS_MAX_SIZE), default=SMDS_MAX_SIZE)
    """Initial size."""
    secondary: int | None = attribute(on_disk(0, SMDS_MAX_SIZE), default=None)
    """Increment of an expansion; without one, or 0: 10 % of the current size."""
    max_size: int | None = attribute(on_disk(1, SMDS_MAX_SIZE), default=None)
    """Space on its volumes. Expansion stops there with EXPANDST FAILED, at 16 TB with MAXIMUM."""


class Store(Config):
    """The config of a store of any kind; what most kinds have not."""

    __slots__ = ()
    name: str
    mqsc_type: ClassVar[str] = ""  # of objects in MQSC; "": it is none
    holds_messages: ClassVar[bool] = False
    shares_queues: ClassVar[bool] = False  # True if its queues are shared ones
    queue_key: ClassVar[str] = ""  # key of a queue's table that places it there; "": none
    has_measured_size: ClassVar[bool] = False  # True if a MEASURE may have its size
    coupling_facility: str | None = None
    scm_max_size: int | None = None
    allow_auto_alter: bool = False
    expand: str = "NONE"
    smds: Mapping[str, Smds] = {}

    @property
    def known_by_levels(self) -> bool:
        """True for a structure that holds no queues: only measurements say what it holds."""
        return False

    @property
    def table_key(self) -> tuple[str, ...]:
        """The parts of its key in the TOML file."""
        return tuple(self.name.split("/", 1))

    @property
    def mqsc_object(self) -> str:
        """The object that MQSC commands change."""
        return f"{self.mqsc_type}({mqsc_name(self.table_key[-1])})"


@described
class ForecastSettings(Store):
    """Settings of the forecasts of a store that holds messages, and the drift from which they are in doubt."""

    holds_messages: ClassVar[bool] = True

    drift_tolerance_pct: float = assumed(Form(number(0, 100)), default=5.0)
    """Drift above which an alert opens."""
    forecast_horizon_s: float = assumed(Form(number(59, 86_400)), default=28_800.0)
    """Horizon of the forecast in seconds, 60 to 86,400 [assumed]."""
    forecast_lead_s: float = assumed(Form(number(0, 86_400)), default=7200.0)
    """A watch opens when the median predicted time until full is at most this number of seconds [assumed]."""
    forecast_page_lead_s: float = assumed(Form(number(0, 86_400)), default=1800.0)
    """Seconds that a person needs: a watch becomes a [page](forecast.md#when-it-alerts) when the median predicted
    time until full is at most this, or twice this when it passes its threshold; a `queue-full-forecast` opens
    at most this long before [assumed]."""
    forecast_probability: float = assumed(Form(number(0, 1)), default=0.5)
    """Minimum probability of full within an hour for a watch to open 15 minutes before; less with less time left,
    more with more; earlier than an hour before, 0.9 within the horizon [fitted]."""
    needless_per_saved: float | None = assumed(Form(number(0, 1000)), default=None)
    """Needless calls that one filling heard in time is [worth](forecast.md#when-a-page-pays): the more, the earlier
    and the more often it pages."""
    policy: str | None = assumed(choice(*POLICIES), default=None)
    """The same in a word: quiet (0.5), balanced (1.5) or early (4)."""

    @property
    def needless(self) -> float:
        """Needless calls that one filling heard in time is worth."""
        if self.needless_per_saved is not None:
            return self.needless_per_saved
        return POLICIES[self.policy or BALANCED]

    @property
    def high_pct(self) -> int:
        """Usage that counts as high, percent: FULLTHRESHOLD, or its default where there is none."""
        return FULL_THRESHOLD


@described
class Structure(ForecastSettings):
    """A CF structure of a queue-sharing group, with its data sets. `name` is "QSG1/APP1".

    One of other programs has no group: its name is that in the CFRM policy.
    """

    kind: ClassVar[Literal["structure"]] = "structure"
    mqsc_type: ClassVar[str] = "CFSTRUCT"
    queue_key: ClassVar[str] = "structure"
    shares_queues: ClassVar[bool] = True
    has_measured_size: ClassVar[bool] = True

    name: str
    queue_sharing_group: str
    queue_managers: tuple[str, ...]  # of the group, sorted
    cfrm_policy: str | None = None  # the name of the policy that describes it; None: not known
    coupling_facility: str | None = attribute(_FACILITY, default=None, cfrm="PREFLIST")
    """Its coupling facility; without one only `scm_max_size` limits its storage class memory."""
    size: int = attribute(in_bytes(1), cfrm="SIZE", xcf="POLICY SIZE", action="alter-size")
    """Maximum size."""
    init_size: int | None = attribute(in_bytes(1), default=None, cfrm="INITSIZE", xcf="POLICY INITSIZE", optional=True)
    """Initial size."""
    full_threshold: int = attribute(whole(0, 100), default=FULL_THRESHOLD, cfrm="FULLTHRESHOLD")
    """Percentage at which `threshold` alerts open; 0: none."""
    allow_auto_alter: bool = attribute(YES_NO, default=False, cfrm="ALLOWAUTOALT")
    """True: at FULLTHRESHOLD, ratio and size are adapted to the usage every 60 s, up to `size`."""
    scm_max_size: int | None = attribute(_SCM_SIZE, default=None, cfrm="SCMMAXSIZE", xcf="SCMMAXSIZE", optional=True)
    """Maximum storage class memory, with SCMALGORITHM(KEYPRIORITY1); its pools become 3 % smaller; 0: none,
    whatever the policy says."""
    scm_prestage_rate: int = assumed(in_bytes(MIB), default=500_000_000)
    """Bytes/s that the coupling facility moves out, at least 1M [assumed]."""
    scm_prefetch_rate: int = assumed(in_bytes(MIB), default=500_000_000)
    """Bytes/s that it brings back, at least 1M [assumed]."""
    scm_read_us: int = assumed(whole(0, 1_000_000), default=275)
    """Microseconds that a get waits per 4 KB in storage class memory [assumed; published: 230 to 320, MQ on z14, p.
    23]."""
    cf_level: int = attribute(whole(1, 5), mqsc="CFLEVEL")
    """1 to 5."""
    offload: Offload = attribute(choice("SMDS", "DB2", "NONE"), default="SMDS", mqsc="OFFLOAD")
    """SMDS or DB2, which need `cf_level` 5; NONE below."""
    offld1_th: int = attribute(whole(0, 100), default=70, mqsc="OFFLD1TH", action="offload")
    """Usage in percent above which the first rule offloads data."""
    offld2_th: int = attribute(whole(0, 100), default=80, mqsc="OFFLD2TH", action="offload")
    """The same of the second rule."""
    offld3_th: int = attribute(whole(0, 100), default=90, mqsc="OFFLD3TH", action="offload")
    """The same of the third rule."""
    offld1_sz: int = attribute(_RULE_SIZE, default=32 * KIB, mqsc="OFFLD1SZ", action="offload")
    """Size in bytes above which the first rule offloads data; 64K switches a rule off."""
    offld2_sz: int = attribute(_RULE_SIZE, default=4 * KIB, mqsc="OFFLD2SZ", action="offload")
    """The same of the second rule."""
    offld3_sz: int = attribute(_RULE_SIZE, default=0, mqsc="OFFLD3SZ", action="offload")
    """The same of the third rule."""
    ds_block: int = attribute(_BLOCK_SIZE, default=256 * KIB, mqsc="DSBLOCK")
    """8K to 1M, powers of two."""
    ds_expand: bool = attribute(YES_NO, default=True, mqsc="DSEXPAND", action="ds-expand")
    """True if its data sets expand."""
    smds_prefix: int = assumed(whole(0, 400), default=0)
    """Bytes before a message in its data set, 0 to 400 [assumed]."""
    offload_min_length: int = assumed(whole(0, RULE_OFF), default=140)
    """Maximum length in bytes of a message that no rule offloads, because it would save nothing [assumed]."""
    queues: tuple[str, ...] = ()  # its shared queues, sorted
    smds: Mapping[str, Smds] = field(default_factory=dict, hash=False)  # of every queue manager of the group

    @property
    def short_name(self) -> str:
        """The name in MQSC commands: APP1 of QSG1/APP1."""
        return self.name.rpartition("/")[2]

    @property
    def policy_name(self) -> str:
        """The name in the CFRM policy and in SETXCF commands, with the group filled to four characters."""
        return policy_name_of(self.name)

    @property
    def is_policy_seen(self) -> bool:
        """False if nothing shows SIZE and INITSIZE of its CFRM policy: `size` may be the present size alone."""
        return self.cfrm_policy is not None or self.init_size is not None

    @property
    def is_administration(self) -> bool:
        """True for the administration structure of its queue-sharing group."""
        return self.short_name == ADMINISTRATION

    @property
    @override
    def high_pct(self) -> int:
        return self.full_threshold or FULL_THRESHOLD

    @property
    @override
    def known_by_levels(self) -> bool:
        return not self.holds_queues

    @property
    def name_parts(self) -> tuple[str, ...]:
        """The kind of name that each part of its name is; "": a number or a name of IBM."""
        if not self.queue_sharing_group:
            return ("other structure",)
        return "group", "" if self.is_administration else "structure"

    @property
    def holds_queues(self) -> bool:
        """False for an administration structure or one of other programs: only measurements say what it holds."""
        return bool(self.queue_sharing_group) and not self.is_administration

    @property
    def total_bytes(self) -> int:
        """Maximum size."""
        return self.size

    @property
    def details(self) -> str:
        """Main attributes as text, for a summary of the estate."""
        parts = [f"CFLEVEL({self.cf_level})"]
        if not self.holds_queues:
            parts = ["administration structure" if self.is_administration else "holds no queues", "known by levels"]
        elif self.offload == "NONE":
            parts.append("no offload rules")
        else:
            rules = " ".join("off" if rule.off else f"{rule.th}%/{format_size(rule.sz)}" for rule in self.rules)
            parts.append(f"OFFLOAD({self.offload}) {rules}")
        if self.init_size is not None and self.init_size != self.size:
            parts.append(f"INITSIZE {format_size(self.init_size)}")
        if self.scm_max_size is not None:
            parts.append(f"SCM {format_size(self.scm_max_size)}")
        if self.coupling_facility is not None:
            parts.append(f"on {self.coupling_facility}")
        return ", ".join(parts)

    @property
    def rules(self) -> tuple[OffloadRule, OffloadRule, OffloadRule]:
        """The three offload rules, also those that are off."""
        thresholds = self.offld1_th, self.offld2_th, self.offld3_th
        return _offload_rules(thresholds, (self.offld1_sz, self.offld2_sz, self.offld3_sz))


@lru_cache(maxsize=1024)
def _offload_rules(
    thresholds: tuple[int, int, int], sizes: tuple[int, int, int]
) -> tuple[OffloadRule, OffloadRule, OffloadRule]:
    """Return offload rules; most structures of an estate have the same ones."""
    (first, second, third), (size_1, size_2, size_3) = thresholds, sizes
    return OffloadRule(1, first, size_1), OffloadRule(2, second, size_2), OffloadRule(3, third, size_3)


def packs(version: str | None) -> bool:
    """Return True if a queue manager of that version stores several short messages on a page: before MQ 7.0.1.

    Since then, and with an unknown version (None), each message has its own page [published].
    """
    return version is not None and tuple(map(int, version.split("."))) < (7, 0, 1)


@described
class PageSet(ForecastSettings):
    """A page set of a z/OS queue manager. `name` is "QM01/PS04"."""

    kind: ClassVar[Literal["page_set"]] = "page_set"
    mqsc_type: ClassVar[str] = "PSID"
    name_parts: ClassVar[tuple[str, ...]] = ("queue manager", "")
    queue_key: ClassVar[str] = "storage_class"

    name: str
    queue_manager: str
    psid: int  # 0..99
    pages: int = attribute(on_disk(2, MAX_PAGES, PAGES), action="ps-expand")
    """Initial number of 4 KB records of the data set."""
    expand: Literal["SYSTEM", "USER", "NONE"] = attribute(
        choice("SYSTEM", "USER", "NONE"), default="USER", mqsc="EXPAND", action="ps-expand"
    )
    """SYSTEM: by 10 % of the current size; USER: by `secondary_pages`; NONE [IBM: MQ 9.2, DEFINE PSID]."""
    secondary_pages: int | None = attribute(on_disk(0, MAX_PAGES, PAGES), default=None, optional=True)
    """Secondary extent."""
    buffer_pool: int = attribute(whole(0, 99), default=0, mqsc="BUFFPOOL")
    """0 to 99 [IBM: MQ 9.2, DEFINE PSID]."""
    max_pages: int | None = attribute(
        on_disk(2, MAX_PAGES, PAGES), default=None, label="pages at most", action="ps-expand", optional=True
    )
    """Pages on its volumes. Expansion stops there with status FAILED, at 64 GB or 119 expansions with MAXIMUM."""
    version: str | None = None  # of the queue manager, like "9.4"
    queues: tuple[str, ...] = ()  # its private queues, sorted

    @property
    def total_bytes(self) -> int:
        """Initial size."""
        return self.pages * 4 * KIB

    @property
    def details(self) -> str:
        """Main attributes as text, for a summary of the estate."""
        expand = f"EXPAND({self.expand})"
        if self.expand == "USER" and self.secondary_pages:
            expand += f" by {format_size(self.secondary_pages * 4 * KIB)}"
        if self.max_pages is not None and self.expand != "NONE":
            expand += f" up to {format_size(self.max_pages * 4 * KIB)}"
        packed = ", short messages share pages" if self.packs else ""
        return f"{expand}, buffer pool {self.buffer_pool}{packed}"

    @property
    @override
    def table_key(self) -> tuple[str, ...]:
        return self.queue_manager, str(self.psid)

    @property
    def expands(self) -> bool:
        """True if it can expand."""
        return self.expand == "SYSTEM" or (self.expand == "USER" and bool(self.secondary_pages))

    @property
    def packs(self) -> bool:
        """True if short messages share pages."""
        return packs(self.version)

    @property
    def queue_managers(self) -> tuple[str, ...]:
        """Queue managers that use the store."""
        return (self.queue_manager,)


@described
class QueueFile(ForecastSettings):
    """The file of one queue of a distributed queue manager. `name` is "QMD1/INVOICES"."""

    kind: ClassVar[Literal["queue_file"]] = "queue_file"
    mqsc_type: ClassVar[str] = "QLOCAL"
    name_parts: ClassVar[tuple[str, ...]] = ("queue manager", "queue")

    name: str
    queue_manager: str
    queue: str
    max_size: int = attribute(
        _FILE_SIZE, default=QUEUE_FILE_MAX_SIZE, mqsc="MAXFSIZE", label="maximum size", action="max-file-size"
    )
    """Maximum size."""
    file_system_size: int | None = attribute(in_bytes(1), default=None, action="file-system", optional=True)
    """Space for it in the file system; the smaller of the two applies."""
    default_q_buffer_size: int = attribute(in_bytes(0), default=128 * KIB, change=Change.START)
    """Buffer for nonpersistent messages, DefaultQBufferSize: 64K on 32 bit, doubled on 64 bit [published]."""
    default_pq_buffer_size: int = attribute(in_bytes(0), default=256 * KIB, change=Change.START)
    """Buffer for persistent messages, DefaultPQBufferSize: 128K on 32 bit, doubled on 64 bit [published]."""
    version: str | None = None

    @property
    def queues(self) -> tuple[str, ...]:
        """Its queue."""
        return (self.queue,)

    @property
    def total_bytes(self) -> int:
        """Maximum size of the file."""
        return self.limit

    @property
    def details(self) -> str:
        """Main attributes as text, for a summary of the estate."""
        buffers = f"{format_size(self.default_q_buffer_size)} and {format_size(self.default_pq_buffer_size)}"
        return f"MAXFSIZE {format_size(self.max_size)}, buffers {buffers}"

    @property
    def limit(self) -> int:
        """Maximum size of the file, bytes."""
        return self.max_size if self.file_system_size is None else min(self.max_size, self.file_system_size)

    @property
    def queue_managers(self) -> tuple[str, ...]:
        """Queue managers that use the store."""
        return (self.queue_manager,)


@described
class CouplingFacility(Store):
    """Coupling facility with the SCM and storage that its structures share. `name` is "CF01"."""

    kind: ClassVar[Literal["coupling_facility"]] = "coupling_facility"
    name_parts: ClassVar[tuple[str, ...]] = ("coupling facility",)

    name: str
    size: int | None = attribute(in_bytes(1), default=None)
    """Its storage; the part not used by structures is available for augmented space."""
    scm: int | None = attribute(in_bytes(0), default=None, optional=True)
    """Its storage class memory, shared by all structures with `scm_max_size`; where these exceed it together, each
    counts on its share in proportion to its own, until its puts show more."""
    cflevel: int | None = attribute(whole(1, 99), default=None, change=Change.MACHINE)
    """CFLEVEL of its control code, as `D CF` displays it, not that of CFSTRUCT; 26 and above have [no storage class
    memory](what-if.md#without-storage-class-memory)."""
    dump_space: int = attribute(in_bytes(0), default=0, change=Change.MACHINE)
    """Storage for dumps, CFRM DUMPSPACE, which structures cannot have."""
    structures: tuple[str, ...] = ()  # store names of the structures on it, sorted
    others: Mapping[str, int] = field(default_factory=dict, hash=False)  # SIZE of further structures of its policy
    queue_managers: tuple[str, ...] = ()  # of those structures, sorted
    queues: ClassVar[tuple[str, ...]] = ()  # queues belong to its structures

    @property
    def total_bytes(self) -> int | None:
        """Its storage."""
        return self.size

    @property
    def details(self) -> str:
        """Main attributes as text, for a summary of the estate."""
        scm = f"SCM {format_size(self.scm)}" if self.scm else "no SCM" if self.size is not None else "SCM not known"
        level = "" if self.cflevel is None else f"CFLEVEL {self.cflevel}, "
        return f"{level}{scm}, {len(self.structures)} structure{'' if len(self.structures) == 1 else 's'}"


@described
class UniformCluster(Store):
    """A uniform cluster of distributed queue managers. `name` is "UC01"."""

    kind: ClassVar[Literal["uniform_cluster"]] = "uniform_cluster"
    name_parts: ClassVar[tuple[str, ...]] = ("cluster",)

    name: str
    queue_managers: tuple[str, ...] = attribute(Form(names(QMGR_NAME, "queue managers")))
    """Its members, distributed."""
    messages_per_second: float = attribute(Form(number(0, 1e9)))
    """Capacity of one member on a host with room; as much as its host carries, where nothing else limits it."""
    cpu_us: float = attribute(Form(number(0, 1e9)), default=184.0)
    """Microseconds of CPU per message at the limit [IBM: Uniform Cluster Scaling, Table 1]: a host carries 95.75 %
    of its cores divided by this."""
    trigger_pct: float = attribute(Form(number(75, 100)), default=99.5)
    """Load in percent of the capacity of the active members from which another one is wanted; 75 to 100. A lower
    one gives time to start it. In Table 1 members carry what is asked of them up to 99.45 % of the capacity
    computed, and are the limit from 99.8 % on [fitted]."""
    queues: ClassVar[tuple[str, ...]] = ()  # queues belong to its members
    total_bytes: ClassVar[int | None] = None  # it holds no messages

    @property
    def details(self) -> str:
        """Main attributes as text, for a summary of the estate."""
        return f"{self.messages_per_second:g} messages/s per member"


@described
class QueueManagerLog(Store):
    """Log and checkpoints of a distributed queue manager, which its queue files share. `name` is "QMD1"."""

    kind: ClassVar[Literal["queue_manager"]] = "queue_manager"
    name_parts: ClassVar[tuple[str, ...]] = ("queue manager",)

    name: str
    queue_files: tuple[str, ...]  # their store names, sorted
    queues: ClassVar[tuple[str, ...]] = ()  # queues belong to its queue files
    total_bytes: ClassVar[int | None] = None  # it holds no messages

    @property
    def queue_managers(self) -> tuple[str, ...]:
        """The queue manager."""
        return (self.name,)

    @property
    def details(self) -> str:
        """Main attributes as text, for a summary of the estate."""
        return f"log of {len(self.queue_files)} queue file{'s' if len(self.queue_files) > 1 else ''}"


MessageStoreConfig = Structure | PageSet | QueueFile  # of stores that hold messages
StoreConfig = MessageStoreConfig | CouplingFacility | UniformCluster | QueueManagerLog


def structures_of(stores: Iterable[StoreConfig]) -> list[Structure]:
    """Return the structures among stores."""
    return [store for store in stores if isinstance(store, Structure)]


def facility_of(stores: Mapping[str, StoreConfig], config: StoreConfig) -> CouplingFacility | None:
    """Return the coupling facility of a structure; None where the estate has none, and of another store."""
    facility = stores.get(config.coupling_facility or "")
    return facility if isinstance(facility, CouplingFacility) else None


def others_of(stores: Mapping[str, StoreConfig], config: StoreConfig, facility: CouplingFacility) -> list[Structure]:
    """Return the other structures of the coupling facility of a structure."""
    return structures_of(stores[name] for name in facility.structures if name != config.name)


@described
class QueueManager(Config):
    """A queue manager of the estate."""

    name: str
    platform: Literal["zos", "distributed"] = attribute(choice("zos", "distributed"), default="zos")
    """zos or distributed."""
    version: str | None = attribute(Form(text("[0-9]+(\\.[0-9]+)*", 'a string like "9.4"')), default=None)
    """A string such as "9.4"."""
    queue_sharing_group: str | None = None
    expiry_interval_s: float | None = attribute(Form(number(0, 99_999_999, or_low=True)), default=None)
    """Seconds between two scans for [expired messages](events.md#expiry), EXPRYINT on z/OS; 0: none."""
    silence_s: float | None = attribute(Form(number(0, 604_800)), default=None)
    """Seconds of wall time without an event after which the job reports it as a [silent
    source](events.md#silent-sources)."""
    host: str | None = attribute(Form(HOST_NAME), default=None)
    """The machine of a member of a uniform cluster."""

    @property
    def expiry_scan_s(self) -> float:
        """Seconds between two scans for expired messages, 0: none.

        [IBM: IBM MQ, ALTER QMGR]: EXPRYINT(OFF) is the default on z/OS. [IBM: WebSphere MQ internals]: about every 5
        minutes on the other platforms.
        """
        if self.expiry_interval_s is None:
            return 0.0 if self.platform == "zos" else 300.0
        return self.expiry_interval_s
