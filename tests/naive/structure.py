"""A CF structure with its shared message data sets: what its messages cost, and what its state record says."""

from dataclasses import dataclass, field
from typing import Any

from tests.naive import attributes as attrs
from tests.naive.baseline import NaiveBaseline, beyond
from tests.naive.pools import (
    Pools,
    cost_of_put,
    fits_pools,
    fits_structure,
    offload_rule,
    pools_of_size,
    ratio_at_allocation,
    usage_pct,
)
from tests.naive.smds import new_data_set, pages_of_length
from tests.naive.store import Event, NaiveStore
from tests.naive.units import Message, fields_of
from twin.estate.model import Structure


@dataclass(eq=False, kw_only=True)
class StructureMessage(Message):
    """A message of a structure: 1 entry, and what follows."""

    elements: int
    data: str  # where the data is: "" (the structure), SMDS or DB2
    where: list[tuple[int, int]] = field(default_factory=list)  # blocks and pages in the data set


class NaiveStructure(NaiveStore):
    """The twin of one CF structure."""

    messages: list[StructureMessage]

    def __init__(self, config: Structure, aliases: dict[str, str] | None = None) -> None:
        super().__init__(aliases)
        self.attributes = attrs.attributes_of(config)
        self._allocate()
        ds_block = self.attributes["ds_block"]
        self.data_sets = {qmgr: new_data_set(smds, ds_block) for qmgr, smds in sorted(config.smds.items())}

    def _allocate(self) -> None:
        """Pools of INITSIZE, else SIZE, at the ratio the rules ask for now (contract.md, 7, Estate)."""
        init_size = self.attributes["init_size"]
        self.size: int = self.attributes["size"] if init_size is None else init_size
        self.ratio = ratio_at_allocation(self.attributes)
        self.pools = pools_of_size(self.size, self.ratio, self.attributes)

    # -- what a message costs

    def _keep(self, event: Event) -> tuple[StructureMessage, bool]:
        """It fits where entries, elements and the data set do (domain.md, 1 and 2)."""
        length = event["length"]
        used = self._used()
        cost = cost_of_put(length, self.attributes, used, self.pools)
        fits = fits_pools(cost, used, self.pools) and fits_structure(length, cost)
        message = StructureMessage(**fields_of(event, self._queue(event)), elements=cost.elements, data=cost.data)
        if cost.data == "SMDS":
            fits_data_set, message.where = self._place(event["qmgr"], length)
            fits = fits and fits_data_set
        return message, fits

    def _place(self, qmgr: str, length: int) -> tuple[bool, list[tuple[int, int]]]:
        """Into the putting queue manager's own data set (domain.md, 2): whether it fits, and where it lies."""
        data_set = self.data_sets[qmgr]
        pages = pages_of_length(length, self.attributes["smds_prefix"])
        beyond_the_model = self._beyond(f"smds/{qmgr}/blocks")
        fits = data_set.make_room(pages, self.attributes["ds_expand"], beyond_the_model)
        return fits, data_set.place(pages)

    def _free(self, message: StructureMessage) -> None:
        self.data_sets[message.qmgr].release(message.where)

    # -- attributes

    def _alter(self, attributes: dict[str, Any]) -> None:
        """ALTER CFSTRUCT and SETXCF START,ALTER: whole, or refused whole and counted (our reading).

        contract.md, 7 (Estate): `size` takes effect at once at the present ratio, between the used and SIZE; beyond
        that it is refused and counted. The ratio does not follow the rules.
        """
        new = attrs.read_attributes(attributes)
        if any(name in attrs.ONLY_AT_REBUILD for name in new) or self._refuses_block_size(new):
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
        """New policy values, SIZE and INITSIZE included, and pools allocated anew (contract.md, 7, Estate).

        Our reading: never too small for what it holds (that is a fact), but refused where INITSIZE would be above SIZE.
        """
        new = attrs.read_attributes(attributes)
        policy = self.attributes | new
        unsound = policy["init_size"] is not None and policy["init_size"] > policy["size"]
        if unsound or self._refuses_block_size(new):
            self.refused_alters += 1
            return
        self._take_up(new)
        self._allocate()

    def _refuses_block_size(self, new: dict[str, Any]) -> bool:
        """DSBLOCK can change only while every data set is empty (our reading; a baseline is not seen)."""
        if new.get("ds_block", self.attributes["ds_block"]) == self.attributes["ds_block"]:
            return False
        return any(data_set.pages_used() > 0 for data_set in self.data_sets.values())

    def _take_up(self, new: dict[str, Any]) -> None:
        """Attributes count from this event on; messages already stored keep their cost (contract.md, 7, State)."""
        self.attributes.update({name: value for name, value in new.items() if name in attrs.KEPT})
        for data_set in self.data_sets.values():
            if data_set.ds_block != self.attributes["ds_block"]:
                data_set.set_block_size(self.attributes["ds_block"])
            if new.get("ds_expand", False):
                data_set.try_again()

    # -- MEASURE

    def _new_baseline(self, measured: dict[str, Any]) -> NaiveBaseline:
        """Our reading: where messages were not measured, each entry is one message."""
        model = self.state()
        entries = beyond(measured, "ents_used", model["ents_used"])
        elements = beyond(measured, "elems_used", model["elems_used"])
        messages = entries
        if measured.get("messages") is not None:
            messages = beyond(measured, "messages", model["messages"])
        smds: dict[str, dict[str, int]] = {}
        for qmgr, fields in measured.get("smds", {}).items():
            if qmgr in model["smds"]:
                smds[qmgr] = {
                    "blocks": beyond(fields, "blocks_used", model["smds"][qmgr]["blocks_used"]),
                    "pages": beyond(fields, "pages_used", model["smds"][qmgr]["pages_used"]),
                    "messages": beyond(fields, "messages", model["smds"][qmgr]["messages"]),
                }
        shown = {"messages": messages, "entries": entries, "elements": elements, "smds": smds}
        return NaiveBaseline(shown, self.held.unmatched())

    def _compared(self, measured: dict[str, Any]) -> list[tuple[int, int, int]]:
        """Entries, elements, blocks of each data set, in that order."""
        state, compared = self.state(), []
        if measured.get("ents_used") is not None:
            compared.append((state["ents_used"], measured["ents_used"], state["ents_max"]))
        if measured.get("elems_used") is not None:
            compared.append((state["elems_used"], measured["elems_used"], state["elems_max"]))
        for qmgr, fields in sorted(measured.get("smds", {}).items()):
            if qmgr in state["smds"] and fields.get("blocks_used") is not None:
                data_set = state["smds"][qmgr]
                compared.append((data_set["blocks_used"], fields["blocks_used"], data_set["blocks_total"]))
        return compared

    # -- what is in use

    def _used(self) -> Pools:
        """Entries and elements in use: of the messages, and what is left of the baseline (our reading)."""
        entries = len(self.messages) + self._beyond("entries")
        return Pools(entries, sum(message.elements for message in self.messages) + self._beyond("elements"))

    def _fields(self) -> dict[str, Any]:
        """Our reading: `offloaded_messages` has nothing of the baseline: nobody measured those."""
        used = self._used()
        offloaded = [message for message in self.messages if message.data != ""]
        return {
            "size": self.size,
            "ents_max": self.pools.entries,
            "ents_used": used.entries,
            "elems_max": self.pools.elements,
            "elems_used": used.elements,
            "usage_pct": usage_pct(used, self.pools),
            "alterable": True,  # contract.md, 7 (State): false only while data is in SCM
            "offloaded_messages": len(offloaded),
            "offloaded_bytes": sum(message.length for message in offloaded),
            "offload_rule": offload_rule(self.attributes, used, self.pools),
            "smds": {qmgr: self._data_set_state(qmgr) for qmgr in self.data_sets},
        }

    def _data_set_state(self, qmgr: str) -> dict[str, Any]:
        data_set = self.data_sets[qmgr]
        messages = [message for message in self.messages if message.qmgr == qmgr and message.data == "SMDS"]
        return {
            "blocks_total": data_set.blocks_total(),
            "blocks_used": data_set.blocks_used() + self._beyond(f"smds/{qmgr}/blocks"),
            "pages_used": data_set.pages_used() + self._beyond(f"smds/{qmgr}/pages"),
            "messages": len(messages) + self._beyond(f"smds/{qmgr}/messages"),
            "status": data_set.status,
        }
