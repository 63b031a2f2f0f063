"""Capacity: laws of structures and clusters, offload rules, and the statements that change a size.

- Structures: pools, the SCM and augmented space that the facility leaves them, offload rules. These are pure functions
  of the estate: the twin, the forecast and `mqtwin size` compute with the same laws. Sources: [published] IBM MQ for
  z/OS, capacity planning for offloading; how storage class memory works with IBM MQ for z/OS (augmented space is never
  taken from a structure). [fitted] and [assumed] are marked where they stand.
- Uniform clusters: the rate that one carries, by its members and the hosts they run on. Source: [IBM: MQ Uniform
  Cluster Scaling Example].
- Statements that an operator types, each once, and the plan of a change as such statements and steps. Sources: [IBM:
  MQ, ALTER CFSTRUCT; RESET SMDS; ALTER SMDS; ALTER PSID], [IBM: z/OS MVS System Commands, DISPLAY CF, DISPLAY XCF and
  SETXCF], [IBM: z/OS MVS Setting Up a Sysplex, CFRM parameters for administrative data utility].
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

from kernels import pools
from twin.base.units import KIB
from twin.estate import (
    ALWAYS_OFFLOADED_ABOVE,
    RULE_OFF,
    Estate,
    MessageStoreConfig,
    OffloadRule,
    PageSet,
    QueueFile,
    StoreConfig,
    Structure,
    UniformCluster,
    format_size,
)
from twin.estate.model import FIXED_AUGMENTED, facility_of, mqsc_name, others_of
from twin.estate.settings import DataSetSetting
from twin.records import Step

# --- sizes of a structure ---------------------------------------------------------------------------------------------

SCM_POOLS_PCT = 97  # of its pools that a structure with SCM keeps [published: fewer; assumed: 3 % fewer]
_UNBOUNDED = 1 << 62


class Allocation(NamedTuple):
    """The pools of a structure. size: bytes; ratio: elements per entry, a fraction after automatic alter."""

    size: int
    ratio: int | Fraction


class Usage(NamedTuple):
    """Contents of a structure. holds_data: True if a data set of it holds messages."""

    entries: int
    elements: int
    holds_data: bool


def allocate(config: Structure) -> Allocation:
    """Return the allocation of a new or rebuilt structure: INITSIZE, else SIZE, at the ratio its rules ask for.

    The ratio is 2 where an offload rule has threshold 0 and size 0 [published: APAR PM77094], else 6.
    """
    offloads = config.cf_level >= 5 and config.offload != "NONE"
    everything = any(rule.th == 0 and rule.sz == 0 for rule in config.rules)
    ratio = pools.RATIO_ALL_OFFLOADED if offloads and everything else pools.RATIO
    return Allocation(config.init_size or config.size, ratio)


def pool_sizes(config: Structure, size: int, ratio: int | Fraction) -> tuple[int, int]:
    """Return (entries, elements) of `size` bytes at `ratio` elements per entry.

    [fitted] to the published table of a 4 GB structure; see `kernels.pools` for what each takes.
    """
    share, shares = ratio.numerator, ratio.denominator
    entries = size * shares // (pools.ENTRY_BYTES * shares + pools.ELEMENT_BYTES * share)
    elements = entries * share // shares
    if config.scm_max_size:
        return entries * SCM_POOLS_PCT // 100, elements * SCM_POOLS_PCT // 100
    return entries, elements


def bounds(estate: Estate, config: Structure) -> tuple[int, int]:
    """Return (bytes of SCM, bytes of dynamic augmented space) that a structure may use.

    A coupling facility of which only the CFRM policy is known, or none, bounds nothing.
    """
    scm_max = config.scm_max_size or 0
    facility = facility_of(estate.stores, config)
    if facility is None or facility.size is None:
        return scm_max, _UNBOUNDED
    allocated = sum(map(_allocated_bytes, (*others_of(estate.stores, config, facility), config)))
    return min(scm_max, facility.scm or 0), max(0, facility.size - facility.dump_space - allocated)


def assured_scm(estate: Estate, config: Structure) -> int:
    """Return the bytes of SCM that are left for a structure when every structure of its facility takes its share.

    All of SCMMAXSIZE, unless the facility's SCM is over-committed; then as much less as all together lack.
    """
    scm_max = config.scm_max_size or 0
    facility = facility_of(estate.stores, config)
    if facility is None or facility.size is None:
        return scm_max
    committed = scm_max + sum(store.scm_max_size or 0 for store in others_of(estate.stores, config, facility))
    scm = facility.scm or 0
    return scm_max if committed <= scm else scm_max * scm // committed


def room_to_grow(estate: Estate, config: Structure, size_now: int) -> int | None:
    """Return the bytes that a coupling facility has left for one of its structures to grow; None: not known.

    The others count as they are allocated at first: what they have grown by since is in the facility's state record.
    """
    facility = facility_of(estate.stores, config)
    if facility is None or facility.size is None:
        return None
    allocated = sum(map(_allocated_bytes, others_of(estate.stores, config, facility)))
    fixed = FIXED_AUGMENTED if config.scm_max_size is not None else 0
    return facility.size - facility.dump_space - allocated - size_now - fixed


def _allocated_bytes(config: Structure) -> int:
    """Return the bytes of its coupling facility that a structure takes, its fixed augmented space included."""
    return allocate(config).size + (FIXED_AUGMENTED if config.scm_max_size is not None else 0)


# --- offload rules proposed to an administrator: always the whole set of six values ---------------------------

# [IBM: Specifying offload options for shared messages, Capacity]: a threshold for all messages is given, and "the other
# offload parameters would also need to be adjusted". A rule helps only if no other one offloads the same data earlier:
# thresholds rise and sizes fall from rule 1 to rule 3.

SOONER_TH = 70  # OFFLD3TH of the remedy that saves elements, percent [assumed]
_STEP = 10  # percent between the thresholds of two rules, as in the defaults 70, 80, 90 [IBM: the same, table]
_SIZES = (32 * KIB, 4 * KIB)  # of rules 1 and 2 by default [IBM: the same, table]


def has_rules(config: Structure) -> bool:
    """True if the structure offloads by rules: [IBM: the same] they need CFLEVEL(5)."""
    return config.cf_level >= 5 and config.offload != "NONE"


def offloads_all_by(config: Structure, threshold: int) -> bool:
    """True if some rule offloads all data at that threshold, percent, or below."""
    return any(not rule.off and rule.th <= threshold and rule.sz <= config.offload_min_length for rule in config.rules)


def with_all_offloaded_above(config: Structure, threshold: int) -> tuple[OffloadRule, ...]:
    """Return three rules of which the third offloads all data above a threshold, and the others less, earlier.

    Rules 1 and 2 keep what the structure has, as far as they can fire before rule 3. A rule for which no threshold is
    left is switched off with a size of 64K. `threshold`: OFFLD3TH, percent.
    """
    first, second, _ = config.rules
    third = OffloadRule(number=3, th=threshold, sz=0)
    first_sz = first.sz // KIB * KIB
    if not first.off and not 2 * KIB <= first_sz < ALWAYS_OFFLOADED_ABOVE:
        first_sz = _SIZES[0]
    max_sz = ALWAYS_OFFLOADED_ABOVE if first.off else first_sz
    second_sz = second.sz // KIB * KIB
    if second.off or not 0 < second_sz < max_sz:
        second_sz = _SIZES[1] if max_sz > _SIZES[1] else max_sz // 2 // KIB * KIB
    second_th = _below(threshold, second.th)
    if second_th is None:
        return OffloadRule(number=1, th=0, sz=RULE_OFF), OffloadRule(number=2, th=0, sz=RULE_OFF), third
    first_th = _below(second_th, first.th)
    if first.off or first_th is None:
        return OffloadRule(number=1, th=0, sz=RULE_OFF), OffloadRule(number=2, th=second_th, sz=second_sz), third
    return OffloadRule(number=1, th=first_th, sz=first_sz), OffloadRule(number=2, th=second_th, sz=second_sz), third


def _below(threshold: int, present: int) -> int | None:
    """Return a threshold below another: the present one if it is, else a step less; None: there is none."""
    if present < threshold:
        return present
    if threshold <= 0:
        return None
    return threshold - _STEP if threshold > _STEP else threshold // 2


# --- uniform clusters -------------------------------------------------------------------------------------------------
# Every figure is of [IBM: MQ Uniform Cluster Scaling Example]: members of 4 cores on two hosts of 24 cores, 180 senders
# whose connections the cluster balances over the active members. A member alone carries 21,070 messages/s at its limit
# (Table 1, second row), which the estate gives. A host carries what its CPU does: with all six members at their limit
# it was 95.75 % busy, and a message took 184 us of CPU (16.12 % of 24 cores at 21,070/s), so that six members carry
# less than six times one. Connections are spread evenly, so the member that can carry least limits all of them. Two
# members without a limit of their own, one on each host, carried 248,100/s (Table 2).

USABLE_HOST_PCT = 95.75  # of a host's CPU at its limit [IBM: Table 1, the row of six members at their limit]
SATURATED_CPU_US = 184.0  # CPU of a message at the limit of a member [IBM: Table 1, second row]
FIRST_CPU_US = 127.0  # CPU of a message of the only member of a host, below its limit [IBM: Table 1, first row]
# CPU of a message on a host whose members carry nearly all that it can, and what is left of the difference to the first
# member's with each sixth of that: the values of the smallest error in all rows of Tables 1 and 2, both hosts [fitted].
BUSY_CPU_US = 178.0
BUSY_FALL = 0.37


def host_rate(cores: float, cpu_us: float = SATURATED_CPU_US) -> float:
    """Return the rate that a host carries, messages/s."""
    return cores * USABLE_HOST_PCT / 100.0 / cpu_us * 1e6


def message_cpu_us(load: float, *, is_saturated: bool, cpu_us: float = SATURATED_CPU_US) -> float:
    """Return the CPU of a message on a host, microseconds.

    "Initial QMs on a machine tend to consume less CPU than subsequent QMs, probably due to the lesser impact of context
    switching across the machine": 127 us where one of six members carries its sixth of what the host can, 184 us at the
    limit [IBM: Table 1]. It is the load of the host, not the number of its members, that counts: one without a limit of
    its own takes at full load as much as six [IBM: Table 2]. Below a sixth nothing is published: 127 us. The CPU of a
    host is within 5 percentage points in every row of both tables. A closer law of the load alone there is not: with
    six members at the same rate the published hosts were 97 and 87 % busy. A `load` of 1 is all that the host carries.
    """
    if is_saturated:
        return cpu_us
    sixths = max(1.0, 6.0 * load)
    us: float = BUSY_CPU_US - (BUSY_CPU_US - FIRST_CPU_US) * BUSY_FALL ** (sixths - 1.0)
    return us * cpu_us / SATURATED_CPU_US


def achieved(target: float, capacity: float) -> float:
    """Return the rate that a cluster delivers, messages/s [IBM: MQ Uniform Cluster Scaling Example, Table 1]."""
    return min(target, capacity)


class Candidate(NamedTuple):
    """A member that can be started. host: None if the estate does not place it."""

    name: str
    host: str | None


class Plan(NamedTuple):
    """Members that carry a load."""

    members: int
    start: tuple[Candidate, ...]  # existing members to start, the best first
    create: tuple[str | None, ...]  # hosts of the first to create; None: add one, or the estate has none


_MAX_PLANNED = 100  # members created one by one; beyond that their number is computed


class ClusterCapacity:
    """The laws of one cluster."""

    def __init__(self, member_rate: float, host_rates: Mapping[str, float]) -> None:
        self.member_rate = member_rate  # rate that a member carries where its host has room, messages/s
        self.host_rates = host_rates  # rate that each host carries, messages/s

    def carried(self, hosts: Sequence[str | None]) -> float:
        """Return the rate that active members carry, messages/s; hosts: host of each member."""
        return len(hosts) * self._share(hosts)

    def _share(self, hosts: Sequence[str | None]) -> float:
        """Return the rate of each member, messages/s: that of the one that can carry least."""
        counts = {host: hosts.count(host) for host in dict.fromkeys(hosts) if host in self.host_rates}
        shares = (self.host_rates[host] / count for host, count in counts.items() if host is not None)
        return min((self.member_rate, *shares))

    def is_limit(self, host: str, hosts: Sequence[str | None]) -> bool:
        """Return True if the members of a host are at their limit when all carry as much as they can together."""
        own = min(self.member_rate, self.host_rates[host] / max(1, hosts.count(host)))
        return own <= self._share(hosts)

    def room(self, host: str | None, hosts: Sequence[str | None]) -> float:
        """Return the rate that a host carries beyond what its active members carry alone, messages/s."""
        if host not in self.host_rates or host is None:
            return self.member_rate
        return self.host_rates[host] - hosts.count(host) * self.member_rate

    def best(self, candidates: Sequence[Candidate], hosts: Sequence[str | None]) -> Candidate | None:
        """Return the candidate to start next, or None where none raises the rate.

        It is the one that raises the rate most; of those that do so alike, one on the host with most room; of those the
        first.
        """
        ranked = [(self.carried([*hosts, other.host]), self.room(other.host, hosts), other) for other in candidates]
        if not ranked:
            return None
        rate, _, candidate = max(ranked, key=lambda entry: entry[:2])
        return candidate if rate > self.carried(hosts) else None

    def plan(self, load: float, hosts: Sequence[str | None], idle: Sequence[Candidate]) -> Plan:
        """Return the members that carry more than a load, messages/s: the active ones and those needed beside, idle
        first.
        """
        placed, left = list(hosts), list(idle)
        start: list[Candidate] = []
        while self.carried(placed) <= load and (candidate := self.best(left, placed)) is not None:
            start.append(candidate)
            left.remove(candidate)
            placed.append(candidate.host)
        create: list[str | None] = []
        places = [Candidate("", host) for host in self.host_rates]
        while self.carried(placed) <= load and len(create) < _MAX_PLANNED:
            place = self.best(places, placed)
            create.append(None if place is None else place.host)
            placed.append(create[-1])
        missing = load - self.carried(placed)
        more = int(missing / self._share(placed)) + 1 if missing >= 0.0 else 0
        return Plan(len(placed) + more, tuple(start), tuple(create))

    def members_for(self, load: float, known: Sequence[Candidate]) -> int:
        """Return the number of members, at least 1, that carry a load; known: all members, the preferred ones first."""
        return max(1, self.plan(load, (), known).members)


def host_of(estate: Estate, member: str) -> str | None:
    """Return the host of a queue manager, or None where the estate does not place it."""
    qmgr = estate.queue_managers.get(member)
    return None if qmgr is None else qmgr.host


def laws_of(estate: Estate, config: UniformCluster) -> ClusterCapacity:
    """Return the laws of a cluster, with the hosts on which the estate places its members."""
    hosts = {host_of(estate, name) for name in config.queue_managers} & estate.hosts.keys()
    rates = {name: host_rate(cores, config.cpu_us) for name, cores in estate.hosts.items() if name in hosts}
    return ClusterCapacity(config.messages_per_second, rates)


# --- statements -------------------------------------------------------------------------------------------------------


def alter_rules(config: Structure, rules: Iterable[OffloadRule]) -> str:
    """Return the MQSC command that sets all offload rules: six values, in order."""
    values = (f"OFFLD{rule.number}TH({rule.th}) OFFLD{rule.number}SZ({rule.sz // KIB}K)" for rule in rules)
    return f"ALTER {config.mqsc_object} {' '.join(values)}"


def display_queue_status(queue: str, words: str) -> str:
    """Return the MQSC command that displays the status of a queue. words: what of it."""
    return f"DISPLAY QSTATUS({mqsc_name(queue)}) {words}"


def display_structure_status(config: Structure) -> str:
    """Return the MQSC command that displays entries and size of a CF structure."""
    return f"DISPLAY CFSTATUS({mqsc_name(config.short_name)}) TYPE(SUMMARY)"


def expand_data_set(config: Structure, qmgr: str) -> str:
    """Return the MQSC command that lets a shared message data set expand again after a failed expansion."""
    return f"ALTER SMDS({mqsc_name(qmgr)}) CFSTRUCT({mqsc_name(config.short_name)}) DSEXPAND(YES)"


def copy_data_set(config: Structure, qmgr: str) -> tuple[Step, ...]:
    """Return the steps that copy a shared message data set to a larger one [IBM: MQ 9.2, RESET SMDS]."""
    reset = f"RESET SMDS({mqsc_name(qmgr)}) CFSTRUCT({mqsc_name(config.short_name)})"
    return (
        Step(
            "See its name, which has the queue manager in place of the asterisk",
            f"DISPLAY {config.mqsc_object} DSGROUP",
        ),
        Step("Close it in all members", f"{reset} ACCESS(DISABLED)"),
        Step("Copy it to a larger data set, and give that one its name"),
        Step("Let the members open it", f"{reset} ACCESS(ENABLED)"),
    )


def alter_size(structure: str, size: int) -> str:
    """Return the operator command that changes the size of a structure, bytes rounded up to KB, its unit."""
    return f"SETXCF START,ALTER,STRNAME={structure},SIZE={policy_size(size)}"


def rebuild(structure: str) -> str:
    """Return the operator command that rebuilds a structure. structure: its name in the policy."""
    return f"SETXCF START,REBUILD,STRNAME={structure}"


def change_policy(structure: str, policy: str | None, sizes: Iterable[str] = (), without: str = "") -> tuple[Step, ...]:
    """Return the steps by which a change of the CFRM policy takes effect [IBM: APAR II08695]. `policy` is None if not
    known; `sizes` has the parts of its STRUCTURE statement that change, its name in front, none: the reader chooses;
    `without` names keywords to remove.
    """
    statement = " ".join(sizes) or None
    where = f"policy {policy}" if policy else "the CFRM policy"
    removed = f"remove {without}, " if without else ""
    change = f"Change this in {where}, {removed}keep the rest, and run IXCMIAPU with the whole policy"
    if statement is None:
        change = f"Change the STRUCTURE statement of {structure} in {where}, and run IXCMIAPU with the whole policy"
    if policy:
        activate = [Step("Activate the policy", f"SETXCF START,POLICY,TYPE=CFRM,POLNAME={policy}")]
    else:
        activate = [
            Step("Look up the name of the active policy", "D XCF,POLICY,TYPE=CFRM"),
            Step("Activate the policy of that name by SETXCF START,POLICY,TYPE=CFRM"),
        ]
    return (Step(change, statement), *activate, Step("Rebuild the structure", rebuild(structure)))


def alter_if_policy_allows(structure: str, size: int) -> tuple[Step, ...]:
    """Return the steps before changing a policy that was not seen: its SIZE may have room for `size` bytes already."""
    has_room = f"If that is {policy_size(size)} or more, alter the size; nothing else is needed"
    return (
        Step("See POLICY SIZE, up to which it can be altered", display_structure(structure)),
        Step(has_room, alter_size(structure, size)),
    )


def as_sentence(steps: Iterable[Step]) -> str:
    """Return steps in their order as part of a sentence."""
    return "; ".join(step.line for step in steps)


def display_facility(facility: str) -> str:
    """Return the operator command that displays a coupling facility."""
    return f"D CF,CFNAME={facility}"


def display_structure(structure: str) -> str:
    """Return the operator command that displays a structure. structure: its name in the policy."""
    return f"D XCF,STR,STRNAME={structure}"


def structure_sizes(structure: str, size: int | None, init_size: int | None, scm_max_size: int | None) -> list[str]:
    """Return the parts of a STRUCTURE statement of a CFRM policy up to its sizes, each rounded up to KB. Sizes in
    bytes; None: it stays. `scm_max_size` 0 goes, and has no text.
    """
    parts = [f"STRUCTURE NAME({structure})"]
    if size is not None:
        parts.append(f"SIZE({policy_size(size)})")
    if init_size is not None:
        parts.append(f"INITSIZE({policy_size(init_size)})")
    if scm_max_size:
        parts.append(f"SCMALGORITHM(KEYPRIORITY1) SCMMAXSIZE({policy_size(scm_max_size)})")
    return parts


def structure_statement(config: Structure) -> str:
    """Return the STRUCTURE statement of what the estate knows of a policy, which `twin.estate.cfrm` reads."""
    name, *sizes = structure_sizes(config.policy_name, config.size, config.init_size, config.scm_max_size)
    parts = [f"{name} {sizes[0]}", *sizes[1:]]
    parts.append(f"FULLTHRESHOLD({config.full_threshold}) ALLOWAUTOALT({'YES' if config.allow_auto_alter else 'NO'})")
    if config.coupling_facility is not None:
        parts.append(f"PREFLIST({config.coupling_facility})")
    return "\n  ".join(parts)


def policy_size(size: int) -> str:
    """Return bytes as text, rounded up to KB: a number without a unit would be KB in a policy and in SETXCF."""
    return format_size(-(-size // KIB) * KIB)


def mqsc(config: MessageStoreConfig, settings: Mapping[str, Any]) -> str:
    """Return the MQSC commands of a plan that the estate reads too; "": none."""
    rows = config.rows
    known = [(rows[name], value) for name, value in settings.items() if name in rows]
    words = [row.statement(value) for row, value in known if row.mqsc and row.action]
    return f"ALTER {config.mqsc_object} {' '.join(words)}\n" if words else ""


def cfrm(changed: StoreConfig, settings: Mapping[str, Any]) -> str:
    """Return the STRUCTURE statement of a plan for the CFRM policy; "": the policy stays. changed: with the plan."""
    if isinstance(changed, Structure) and any(name in settings for name, row in Structure.rows.items() if row.cfrm):
        return structure_statement(changed) + "\n"
    return ""


def steps(config: MessageStoreConfig, settings: Mapping[str, Any]) -> tuple[str, ...]:
    """Return what a plan asks people to do, with commands, in order. Arguments as of `mqsc`."""
    lines: list[str] = []
    command = mqsc(config, settings).strip()
    match config:
        case Structure() if settings.get("scm_max_size") == 0:
            lines += _leave_scm_steps(config, settings, command)
        case Structure():
            if any(name.startswith("offld") for name in settings):
                lines.append(f"Offload sooner: {command}")
            elif command:
                lines.append(f"Let data sets expand: {command}")
            lines += [*_policy_steps(config, settings), *_data_set_steps(config, settings)]
        case PageSet():
            lines += _page_set_steps(config, settings, command)
        case QueueFile() if "max_size" in settings:
            if "file_system_size" in settings:
                lines.append(f"Give its file system room for {format_size(settings['file_system_size'])}")
            lines.append(f"Raise the maximum size of the queue file: {command}")
    return tuple(lines)


def _policy_steps(config: Structure, settings: Mapping[str, Any]) -> list[str]:
    name, sizes = config.policy_name, (settings.get(key) for key in ("size", "init_size", "scm_max_size"))
    words = structure_sizes(name, *sizes)
    if len(words) == 1:
        return []
    if "allow_auto_alter" in settings:
        words.append("ALLOWAUTOALT(NO)")
    policy = change_policy(name, config.cfrm_policy, words)
    if "size" in settings and not config.is_policy_seen and config.scm_max_size is None:
        policy = (*alter_if_policy_allows(name, settings["size"]), *policy)
    return [f"Raise the sizes of {name}: {as_sentence(policy)}"]


def _leave_scm_steps(config: Structure, settings: Mapping[str, Any], command: str) -> list[str]:
    """Return how a structure gives up its SCM, in the order in which it can be done.

    MQSC is taken while data is in SCM, size and ratio cannot change until then [IBM: How storage class memory works]; a
    rebuild moves data from SCM into the structure, so SCM has to be emptied first. The policy takes effect by it.
    `command`: its MQSC command or "".
    """
    name = config.policy_name
    lines = _data_set_steps(config, settings)
    if command:
        lines.append(f"Offload sooner, in effect at once, also while data is in SCM: {command}")
    drained = "it comes back when getters have taken the structure to 70 % or below"
    lines.append(f"Wait until no data is in SCM, {drained}: {display_structure(name)}")
    if "size" in settings and config.coupling_facility is not None:
        size = format_size(settings["size"])
        lines.append(
            f"See that {config.coupling_facility} has {size} free, as both structures exist during a rebuild:"
            f" {display_facility(config.coupling_facility)}"
        )
    words = structure_sizes(name, settings.get("size", config.size), settings.get("init_size"), 0)
    policy = change_policy(name, config.cfrm_policy, words, "SCMALGORITHM and SCMMAXSIZE")
    lines.append(f"Take SCM out of {name}: {as_sentence(policy)}")
    lines.append(f"See that no change of the policy is pending: {display_structure(name)}")
    return lines


def _data_set_steps(config: Structure, settings: Mapping[str, Any]) -> list[str]:
    qmgrs = dict.fromkeys(setting.qmgr for name in settings if (setting := DataSetSetting.parse(name)))
    return [_data_set_step(config, qmgr, settings) for qmgr in qmgrs]


def _data_set_step(config: Structure, qmgr: str, settings: Mapping[str, Any]) -> str:
    size = settings.get(str(DataSetSetting(qmgr, "size")))
    if size is not None:
        return f"Copy {qmgr}'s data set to one of {format_size(size)}: {as_sentence(copy_data_set(config, qmgr))}"
    maximum = format_size(settings[str(DataSetSetting(qmgr, "max_size"))])
    growth = f"Add volumes to the storage group of {qmgr}'s data set, so that it can grow to {maximum}"
    return f"{growth}; if an expansion has failed: {expand_data_set(config, qmgr)}"


def _page_set_steps(config: PageSet, settings: Mapping[str, Any], command: str) -> list[str]:
    lines = [f"Let the page set expand: {command}"] if command else []
    if "pages" in settings:
        size = f"{settings['pages']:,} pages of 4 KB"
        lines.append(f"Copy the page set to a data set of {size} while {config.queue_manager} is down")
    elif "max_pages" in settings:
        size = f"{settings['max_pages']:,} pages of 4 KB"
        lines.append(f"Add volumes to the storage group of the page set, so that it can grow to {size}")
    return lines
