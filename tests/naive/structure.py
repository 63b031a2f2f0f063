"""A CF structure with its shared message data sets: cost of messages, attributes, state record.

The rules: docs/storage-model.md#entries-and-elements and the following sections.
"""

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, NamedTuple

from tests.naive import attributes as attrs
from tests.naive.baseline import NaiveBaseline, beyond
from tests.naive.clock import TICK_US
from tests.naive.estimate import Compared
from tests.naive.pools import (
    ELEMENT_BYTES,
    Pools,
    cost_of_put,
    elements_of_length,
    fits_pools,
    fits_structure,
    offload_rule,
    pools_of_size,
    ratio_at_allocation,
    reaches,
    usage_pct,
)
from tests.naive.scm import NaiveScm
from tests.naive.smds import map_blocks, new_data_set, pages_of_length
from tests.naive.store import MQRC_STORAGE_MEDIUM_FULL, Event, NaiveStore
from tests.naive.units import Message, Unit, fields_of
from twin.estate.model import Structure

SAMPLE_TICKS = 6  # 60 s
OF_DATA_SET = ("blocks_used", "pages_used", "messages")
CONTROL_BYTES = 500  # of a message, beside its data
ENOUGH = 20  # messages, whose mean counts
LOOSE = 1.25  # times the pages of their messages that blocks of data sets have


class Facility(NamedTuple):
    """The coupling facility of a structure: its storage, its SCM and SCMMAXSIZE of other structures, in bytes."""

    size: int
    scm: int
    others_scm: int = 0


PLENTY = Facility(64 * 1024**3, 64 * 1024**3)


@dataclass(eq=False, kw_only=True)
class StructureMessage(Message):
    """A message of a structure, which takes 1 entry and the following."""

    elements: int
    data: str  # place of the data: "" (the structure), SMDS or DB2
    where: list[tuple[int, int]] = field(default_factory=list)  # (block, pages in it) of the data set
    in_scm: bool = False


class NaiveStructure(NaiveStore):
    """The twin of a CF structure."""

    of_baseline = ("messages", "ents_used", "elems_used")
    groups = (("ents_used",), ("elems_used",))
    messages: list[StructureMessage]

    def __init__(self, config: Structure, aliases: dict[str, str] | None = None, facility: Facility = PLENTY) -> None:
        super().__init__(aliases)
        self.attributes = attrs.attributes_of(config)
        self.attributes |= {
            "facility_size": facility.size,
            "facility_scm": facility.scm,
            "others_scm": facility.others_scm,
        }
        self.facility_name = config.coupling_facility
        self.length = 0.0  # mean of the messages by the last measurement that shows it
        self.auto_alters = 0
        self._allocate()
        self.scm = self._new_scm()
        ds_block = self.attributes["ds_block"]
        self.data_sets = {qmgr: new_data_set(smds, ds_block) for qmgr, smds in sorted(config.smds.items())}

    def _allocate(self) -> None:
        """Allocate pools of INITSIZE, or else SIZE, at the ratio of the present rules."""
        init_size = self.attributes["init_size"]
        self.size: int = self.attributes["size"] if init_size is None else init_size
        self.ratio: Fraction = Fraction(ratio_at_allocation(self.attributes))
        self.pools = pools_of_size(self.size, self.ratio, self.attributes)

    def _new_scm(self) -> NaiveScm | None:
        if self.attributes["scm_max_size"] is None:
            return None
        return NaiveScm(self.attributes, self.messages, lambda: (self._used(), self.pools))

    # -- what a message costs

    def _fits(self, event: Event) -> bool:
        """Return True if entry, elements and pages of a message fit; a data set expands only for one that is kept."""
        length, used = event["length"], self._used()
        cost = cost_of_put(length, self.attributes, used, self.pools)
        if not fits_pools(cost, used, self.pools) and self._keeps_overfull() and self._scm_sees(cost.elements):
            used = self._used()
            cost = cost_of_put(length, self.attributes, used, self.pools)
        fits = fits_pools(cost, used, self.pools) and fits_structure(length, cost)
        if cost.data == "SMDS" and (fits or self._keeps_overfull()):
            data_set, beyond_the_model = self.data_sets[event["qmgr"]], self._beyond(f"smds/{event['qmgr']}/blocks")
            fits = data_set.make_room(self._pages(length), self.attributes["ds_expand"], beyond_the_model) and fits
        return fits

    def _keep(self, event: Event) -> StructureMessage:
        """Store a message; its data go into the data set of the queue manager that put it."""
        length = event["length"]
        cost = cost_of_put(length, self.attributes, self._used(), self.pools)
        message = StructureMessage(**fields_of(event, self._queue(event)), elements=cost.elements, data=cost.data)
        if cost.data == "SMDS":
            message.where = self.data_sets[event["qmgr"]].place(self._pages(length))
        return message

    def _scm_sees(self, elements: int) -> bool:
        return self.scm is not None and self.scm.see_accepted(elements)

    def _failed(self, event: Event) -> None:
        """Take note of a put with 2192 that no data set explains."""
        super()._failed(event)
        if self.scm is None or event["op"] != "PUT" or event["reason"] != MQRC_STORAGE_MEDIUM_FULL:
            return
        length, used = event["length"], self._used()
        cost = cost_of_put(length, self.attributes, used, self.pools)
        data_set, beyond_the_model = self.data_sets[event["qmgr"]], self._beyond(f"smds/{event['qmgr']}/blocks")
        if cost.data == "SMDS" and not data_set.make_room(self._pages(length), False, beyond_the_model):
            return
        fits = fits_pools(cost, used, self.pools) and fits_structure(length, cost)
        self.scm.see_refused(Pools(used.entries + 1, used.elements + cost.elements), fits)

    def _pages(self, length: int) -> int:
        return pages_of_length(length, self.attributes["smds_prefix"])

    def _free(self, message: StructureMessage) -> None:
        self.data_sets[message.qmgr].release(message.where)

    # -- storage class memory, automatic alter

    def _alterable(self) -> bool:
        """Return True if no data is in SCM."""
        return self.scm is None or self.scm.used() == 0

    def _taking(self, message: StructureMessage, unit: Unit | None, operation: str) -> None:  # noqa: ARG002
        """Read a message from SCM for a get. An expiry [assumed] and a CLEAR do not read it."""
        if self.scm is not None and operation == "get":
            self.scm.read(message)

    def _time_has_come(self) -> None:
        if self.scm is not None:
            self.scm.advance(self._now())

    def _has_acted(self) -> None:
        if self.scm is not None:
            self.scm.forget_if_empty()
            self.scm.begin_if_idle(self._now())

    def _at_tick(self, tick: int) -> None:
        """Sample ALLOWAUTOALT(YES) every 60 s of event time [assumed], with SCM advanced to that time."""
        if self.scm is not None:
            self.scm.advance(tick * TICK_US)
        self._give_baseline_elements()
        if self.scm is not None:
            self.scm.begin_if_idle(tick * TICK_US)  # elements of a baseline may make it fuller
        if tick % SAMPLE_TICKS == 0 and self.attributes["allow_auto_alter"]:
            self._automatic_alter()
            if self.scm is not None:
                self.scm.begin_if_idle(tick * TICK_US)  # another ratio may be fuller

    def _rests(self) -> bool:
        return super()._rests() and not self.attributes["allow_auto_alter"] and not self._awaits_elements()

    def _awaits_elements(self) -> bool:
        """Return True if the baseline has entries, and elements that nobody has measured or worked out."""
        baseline = self.baseline
        return baseline is not None and "elements" not in baseline.known and baseline.amounts["entries"] > 0

    def _scanned(self, tick: int) -> None:
        if self.scm is not None:
            self.scm.forget_if_empty()
            self.scm.begin_if_idle(tick * TICK_US)

    def _turned_back(self, now: int) -> None:
        """End a movement now that would end later."""
        if self.scm is not None and self.scm.busy_until is not None:
            self.scm.busy_until = min(self.scm.busy_until, now * 1000)

    def _automatic_alter(self) -> None:
        """Alter the structure at FULLTHRESHOLD to the ratio in use, then, if still there, by 10 % up to SIZE.

        A ratio in line with the one in use stays: when one pool runs out, at most 5 % of the other would be left.

        While data is in SCM no alter takes effect, and each one counts as refused [assumed].
        """
        used, threshold = self._used(), self.attributes["full_threshold"]
        if not reaches(threshold, used, self.pools):
            return
        if not self._alterable():
            self.refused_alters += 1
            return
        before = self.size, self.ratio
        less, more = sorted((used.entries * self.pools.elements, used.elements * self.pools.entries))
        if less > 0 and 1 - Fraction(less, more) > Fraction(5, 100):
            self.ratio = Fraction(used.elements, used.entries)
        self.pools = pools_of_size(self.size, self.ratio, self.attributes)
        if reaches(threshold, used, self.pools):
            self.size = max(self.size, min(self.attributes["size"], self.size + self.size // 10))
            self.pools = pools_of_size(self.size, self.ratio, self.attributes)
        if (self.size, self.ratio) != before:
            self.auto_alters += 1

    # -- attributes

    def _alter(self, attributes: dict[str, Any]) -> None:
        """Apply an ALTER CFSTRUCT or SETXCF START,ALTER as a whole, or refuse it as a whole and count it [assumed].

        `size` is SETXCF START,ALTER: refused while data is in SCM, or beyond what is used and SIZE; else it takes
        effect at once at the present ratio. The ratio does not follow the rules, which MQSC may always change.
        """
        new = attrs.read_attributes(attributes)
        of_policy = any(name in attrs.ONLY_AT_REBUILD for name in new)
        if of_policy or self._refuses_block_size(new) or ("size" in new and not self._alterable()):
            self.refused_alters += 1
            return
        if "size" in new:
            used, pools = self._used(), pools_of_size(new["size"], self.ratio, self.attributes)
            too_small = pools.entries < max(1, used.entries) or pools.elements < used.elements
            if too_small or new["size"] > self.attributes["size"]:
                self.refused_alters += 1
                return
            self.size, self.pools = new["size"], pools
        self._take_up({name: value for name, value in new.items() if name != "size"})

    def _rebuild(self, attributes: dict[str, Any]) -> None:
        """Take new policy values, SIZE and INITSIZE included, and allocate pools anew.

        SCM comes and goes with a rebuild. Assumed: its contents come back if it goes, and otherwise stay, even beyond a
        smaller SCMMAXSIZE.

        Assumed: a rebuild is refused if INITSIZE would be above SIZE, but not for being smaller than the contents.
        """
        new = attrs.read_attributes(attributes)
        policy = self.attributes | new
        unsound = policy["init_size"] is not None and policy["init_size"] > policy["size"]
        if unsound or self._refuses_block_size(new):
            self.refused_alters += 1
            return
        self._take_up(new)
        self._allocate()
        if self.attributes["scm_max_size"] is None:
            self.scm = None
            for message in self.messages:
                message.in_scm = False
        elif self.scm is None:
            self.scm = self._new_scm()
        elif new.get("coupling_facility", self.facility_name) != self.facility_name:
            self.scm.others_leave = None  # there are others there
        self.facility_name = new.get("coupling_facility", self.facility_name)

    def _refuses_block_size(self, new: dict[str, Any]) -> bool:
        """Return True for a new DSBLOCK while a data set is not empty, apart from a baseline [assumed]."""
        if new.get("ds_block", self.attributes["ds_block"]) == self.attributes["ds_block"]:
            return False
        return any(data_set.pages_used() > 0 for data_set in self.data_sets.values())

    def _take_up(self, new: dict[str, Any]) -> None:
        """Set new attributes, valid from this event on. Messages already stored keep their cost."""
        self.attributes.update({name: value for name, value in new.items() if name in attrs.ATTRIBUTES})
        for data_set in self.data_sets.values():
            if data_set.ds_block != self.attributes["ds_block"]:
                data_set.set_block_size(self.attributes["ds_block"])
            if new.get("ds_expand", False):
                data_set.try_again()

    # -- MEASURE

    def _messages_by(self, measured: dict[str, Any]) -> float | None:
        """Return the messages by entries, each a message, and by what is in SCM, where they take as many elements."""
        entries = measured.get("ents_used")
        if entries is None:
            return super()._messages_by(measured)
        return entries + self._in_scm_by(measured)

    def _in_scm_by(self, measured: dict[str, Any]) -> float:
        """Return the messages in SCM by a measurement, with as many elements as those in the structure."""
        used = (measured.get("scm") or {}).get("used")
        return 0.0 if used is None or self.scm is None else self._messages_of(used, measured)

    def _messages_of(self, scm_bytes: int, measured: dict[str, Any]) -> float:
        """Return the messages in a number of bytes of SCM, with as many elements as those measured in the structure."""
        entries, elements = measured.get("ents_used"), measured.get("elems_used")
        each = 2.0 if not entries or elements is None else max(1.0, elements / entries)
        return scm_bytes / ELEMENT_BYTES / (1.0 + each)

    def _known_by(self, measured: dict[str, Any]) -> float:
        if measured.get("ents_used") is None:
            return super()._known_by(measured)
        known = float(self._used().entries)
        if self.scm is not None and (measured.get("scm") or {}).get("used") is not None:
            known += self._messages_of(self.scm.used(), measured)
        return known

    def _length_by(self, measured: dict[str, Any]) -> float:
        """Return the mean length by what takes elements and blocks of data, bytes; 0: not known."""
        entries, elements, blocks = measured.get("ents_used"), measured.get("elems_used"), 0
        if entries is None or entries < ENOUGH or elements is None:
            return 0.0
        used = {qmgr: own.get("blocks_used") for qmgr, own in (measured.get("smds") or {}).items()}
        if all(used.get(qmgr) is not None for qmgr in self.data_sets):
            maps = {qmgr: map_blocks(own.blocks_total(), own.ds_block) for qmgr, own in self.data_sets.items()}
            blocks = sum(max(0, used[qmgr] - maps[qmgr]) for qmgr in self.data_sets)
        data = elements * ELEMENT_BYTES + blocks * self.attributes["ds_block"] / LOOSE
        return max(1.0, data / entries - CONTROL_BYTES)

    def _shows_a_sample(self, measured: dict[str, Any], held: float) -> bool:
        is_sample = super()._shows_a_sample(measured, held)
        if self.estimate.is_settled:
            self.length = self._length_by(measured) or self.length
        return is_sample

    def _take_over(self, measured: dict[str, Any], held: float) -> None:
        """Take over what is in SCM, too: what was measured beyond the messages there, or less."""
        super()._take_over(measured, held)
        if self.scm is not None and (measured.get("scm") or {}).get("used") is not None:
            messages, elements = round(self._in_scm_by(measured)), elements_of_length(int(self.length or 1024))
            inside = self.scm.held()
            self.scm.unseen = (
                messages - len(inside),
                messages * elements - sum(message.elements for message in inside),
            )

    def _known_pools(self, measured: dict[str, Any]) -> list[tuple[int, int]]:
        """Return entries and elements, those in SCM left out."""
        inside = [message for message in self.messages if not message.in_scm]
        own = {"ents_used": len(inside), "elems_used": sum(message.elements for message in inside)}
        return [(own[name], measured[name]) for name in own if measured.get(name) is not None]

    def _completed(self, measured: dict[str, Any], record: dict[str, Any]) -> dict[str, Any]:
        """Return a measurement with what it lacks as the store had it, of data sets, too."""
        real = measured.get("smds") or {}
        smds = {
            qmgr: {name: own[name] for name in OF_DATA_SET} | real.get(qmgr, {}) for qmgr, own in record["smds"].items()
        }
        return super()._completed(measured, record) | {"smds": real | smds}

    def _new_baseline(self, measured: dict[str, Any]) -> NaiveBaseline:
        """Return the baseline. Assumed: if messages were not measured, each entry is a message."""
        self.baseline = None
        model = self.counted_state()
        entries = beyond(measured, "ents_used", model["ents_used"])
        elements = beyond(measured, "elems_used", model["elems_used"])
        messages = entries
        if measured.get("messages") is not None:
            messages = beyond(measured, "messages", model["messages"])
        smds: dict[str, dict[str, int]] = {}
        for qmgr, data_set in (measured.get("smds") or {}).items():
            if qmgr in model["smds"]:
                smds[qmgr] = {
                    "blocks": beyond(data_set, "blocks_used", model["smds"][qmgr]["blocks_used"]),
                    "pages": beyond(data_set, "pages_used", model["smds"][qmgr]["pages_used"]),
                    "messages": beyond(data_set, "messages", model["smds"][qmgr]["messages"]),
                }
        fields = {"messages": messages, "entries": entries, "elements": elements, "smds": smds}
        new_fields = self._new_fields(measured)
        known = {path.replace("_used", "") for path in new_fields if path.startswith("smds/")}
        known |= {"messages"} if new_fields & {"messages", "ents_used"} else set()
        known |= {"entries"} if "ents_used" in new_fields else set()
        known |= {"elements"} if "elems_used" in new_fields else set()
        return NaiveBaseline(fields, self.held.unmatched(), known)

    def _give_baseline_elements(self) -> None:
        """Give a baseline without measured elements those of its entries, at the mean of the messages [assumed]."""
        if self.baseline is None or not self._awaits_elements():
            return
        inside = [message for message in self.messages if not message.in_scm]
        if not inside:
            return
        elements = sum(message.elements for message in inside)
        room = max(0, self.pools.elements - elements)
        mean = round(self.baseline.amounts["entries"] * elements / len(inside))
        self.baseline.amounts["elements"] = self.baseline.fields["elements"] = min(room, mean)
        self.baseline.known = self.baseline.known | {"elements"}

    def _new_fields(self, measured: dict[str, Any]) -> set[str]:
        """Return the fields that the baseline takes over, those of data sets as "smds/QM01/blocks_used"."""
        of_data_sets = {
            f"smds/{qmgr}/{name}"
            for qmgr, fields in (measured.get("smds") or {}).items()
            for name in OF_DATA_SET
            if qmgr in self.data_sets and fields.get(name) is not None
        }
        return super()._new_fields(measured) | of_data_sets

    def _with_kept(self, measured: dict[str, Any]) -> dict[str, Any]:
        """Return a measurement in which the fields measured before are as the store has them."""
        record, smds = (
            self.counted_state(),
            {qmgr: dict(fields) for qmgr, fields in (measured.get("smds") or {}).items()},
        )
        for path in self.measured:
            if path.startswith("smds/"):
                _, qmgr, name = path.split("/")
                smds.setdefault(qmgr, {})[name] = record["smds"][qmgr][name]
        pools = {name: record[name] for name in self.of_baseline if name in self.measured}
        return measured | pools | {"smds": smds}

    def _unknown(self) -> set[str]:
        """Return the fields that follow from no measurement: an entry is a message."""
        unknown = {"offloaded_messages", "offloaded_bytes"}
        if not self.measured & {"messages", "ents_used"}:
            unknown |= {"messages"}
        if "ents_used" not in self.measured:
            unknown |= {"ents_used", "usage_pct"}
        if "elems_used" not in self.measured:
            unknown |= {"elems_used", "elems_low", "elems_high", "usage_pct"}
        return unknown

    def state(self) -> dict[str, Any]:
        """Return the state record, with null for what was neither counted nor measured, of data sets and SCM too."""
        record = super().state()
        if self.has_operated:
            return record
        smds = {
            qmgr: {
                name: None if name in OF_DATA_SET and f"smds/{qmgr}/{name}" not in self.measured else value
                for name, value in fields.items()
            }
            for qmgr, fields in record["smds"].items()
        }
        scm = record["scm"]
        if scm is not None:
            scm = scm | dict.fromkeys(("used", "ents", "elems", "messages", "aug_dynamic"))
        return record | {"smds": smds, "scm": scm}

    def _compared(self, measured: dict[str, Any]) -> Compared:
        """Return entries, elements, SCM and blocks of each data set, in that order."""
        state, compared = self.counted_state(), Compared()
        if measured.get("ents_used") is not None:
            compared["entries"] = state["ents_used"], measured["ents_used"], state["ents_max"]
        if measured.get("elems_used") is not None:
            compared["elements"] = state["elems_used"], measured["elems_used"], state["elems_max"]
        scm_used = (measured.get("scm") or {}).get("used")
        if scm_used is not None and self.scm is not None:
            compared["scm"] = self.scm.used(), scm_used, self.scm.limit()
        for qmgr, fields in sorted((measured.get("smds") or {}).items()):
            if qmgr in state["smds"] and fields.get("blocks_used") is not None:
                data_set = state["smds"][qmgr]
                compared[qmgr] = data_set["blocks_used"], fields["blocks_used"], data_set["blocks_total"]
        return compared

    # -- what is in use

    def _used(self) -> Pools:
        """Return entries and elements in use, without those in SCM, with what is left of the baseline."""
        outside = [message for message in self.messages if not message.in_scm]
        elements = sum(message.elements for message in outside)
        return Pools(len(outside) + self._beyond("entries"), elements + self._beyond("elements"))

    def _fields(self) -> dict[str, Any]:
        """Return the fields of a structure. Assumed: `offloaded_messages` excludes the baseline."""
        used = self._used()
        offloaded = [message for message in self.messages if message.data != ""]
        return {
            "size": self.size,
            "ents_max": self.pools.entries,
            "ents_used": used.entries,
            "elems_max": self.pools.elements,
            "elems_used": used.elements,
            "elems_low": max(0, used.elements - self._of_mean_length()),
            "elems_high": used.elements + self._of_mean_length(),
            "usage_pct": usage_pct(used, self.pools),
            "alterable": self._alterable(),
            "auto_alters": self.auto_alters if self.attributes["allow_auto_alter"] else None,
            "offloaded_messages": len(offloaded),
            "offloaded_bytes": sum(message.length for message in offloaded),
            "offload_rule": offload_rule(self.attributes, used, self.pools),
            "smds": {qmgr: self._data_set_state(qmgr) for qmgr in self.data_sets},
            "scm": None if self.scm is None else self.scm.record(),
        }

    def _data_set_state(self, qmgr: str) -> dict[str, Any]:
        data_set = self.data_sets[qmgr]
        messages = [message for message in self.messages if message.qmgr == qmgr and message.data == "SMDS"]
        return {
            "blocks_total": data_set.blocks_total(),
            "blocks_max": data_set.blocks_max(self.attributes["ds_expand"]),
            "blocks_used": data_set.blocks_used() + self._beyond(f"smds/{qmgr}/blocks"),
            "pages_used": data_set.pages_used() + self._beyond(f"smds/{qmgr}/pages"),
            "messages": len(messages) + self._beyond(f"smds/{qmgr}/messages"),
            "status": data_set.status,
        }
