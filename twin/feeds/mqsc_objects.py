"""Objects and states that MQSC DISPLAY shows, whether as text or as JSON: measurements, and facts about the estate.

Sources: [IBM: MQ 9.4, DISPLAY CFSTATUS, DISPLAY QSTATUS, DISPLAY QUEUE, DISPLAY CFSTRUCT, DISPLAY STGCLASS]. SIZEMAX of
CFSTATUS is in KB, SIZEUSED a percentage of bytes; elements are not fields. CURFSIZE and CURMAXFS of QSTATUS are in MB,
rounded up.

"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from twin.events import Measured
from twin.feeds.intake import Intake
from twin.feeds.measurements import Measurements
from twin.units import MIB, parse_size

NAME_GROUP = "DISPLAY QMGR QSGNAME in front of it, --group QSG1=QM01,QM02, or an estate that names it"
_CF_ATTRIBUTES = {
    "CFLEVEL": "cf_level",
    "OFFLD1TH": "offld1_th",
    "OFFLD2TH": "offld2_th",
    "OFFLD3TH": "offld3_th",
}
_CF_SIZES = {"OFFLD1SZ": "offld1_sz", "OFFLD2SZ": "offld2_sz", "OFFLD3SZ": "offld3_sz", "DSBLOCK": "ds_block"}
_WITH_QMNAME = frozenset(("CHANNEL", "CHSTATUS", "CLUSQMGR", "CONN", "SMDSCONN", "SUB"))  # other objects that have it
_LOCAL = frozenset(("QLOCAL", "QUEUE", "LOCAL"))  # types of a queue that holds messages


class MqscObjects:
    """Objects of one page.

    Attributes:
        measurements: those that the objects show.
    """

    def __init__(self, intake: Intake) -> None:
        """Start without objects."""
        self._intake = intake
        self.measurements = Measurements(intake)

    def take(self, qmgr: str, time: int, fields: Mapping[str, str], place: str) -> None:
        """Take an object.

        Args:
            qmgr: queue manager that answered.
            time: time of the answer, microseconds since 1970.
            fields: values by keyword, in upper case.
            place: for complaints.
        """
        try:
            if fields.get("QSGDISP") == "GROUP":
                self._pass_over(f"{next(iter(fields))} of QSGDISP(GROUP)")  # a master, of which members have copies
            elif "CFSTATUS" in fields:
                self._structure_status(qmgr, time, fields, place)
            elif {"QUEUE", "QSTATUS", "QLOCAL"} & fields.keys():
                self._queue(qmgr, time, fields, place)
            elif "CFSTRUCT" in fields and "SMDS" not in fields and "SMDSCONN" not in fields:
                self._structure(qmgr, fields, place)
            elif "SMDS" in fields and "CFSTRUCT" in fields:
                self._data_set(qmgr, fields, place)
            elif "STGCLASS" in fields and "PSID" in fields:
                key = f"{qmgr}/{fields['STGCLASS']}"
                self._intake.facts.add("storage_class", key, place, page_set=int(fields["PSID"]))
            elif "QMNAME" in fields and not _WITH_QMNAME & fields.keys():
                self._queue_manager(fields, place)
            elif fields:
                self._pass_over(next(iter(fields)))
        except ValueError as error:
            self._intake.complain("bad-value", place, f"{error}; expected: values as DISPLAY shows them")

    def _pass_over(self, kind: str) -> None:
        self._intake.pass_over("object of DISPLAY that is not read", kind, is_counted=True)

    def group_of(self, qmgr: str) -> str | None:
        """Return the queue-sharing group of a queue manager: that of the estate, else the one seen; or None."""
        estate = self._intake.estate
        known = None if estate is None else estate.queue_managers.get(qmgr)
        return (known.queue_sharing_group if known else None) or self._intake.facts.group_of(qmgr)

    def store_of(self, qmgr: str, structure: str, place: str) -> str | None:
        """Return the store name of a structure, or None, with a complaint, if the group is not known."""
        group = self.group_of(qmgr)
        if group is None:
            text = f"{structure} of {qmgr}, whose queue-sharing group is not known; expected: {NAME_GROUP}"
            self._intake.complain("no-group", place, text)
            self._intake.facts.ungrouped.add(qmgr)
            return None
        return f"{group}/{structure}"

    def _structure_status(self, qmgr: str, time: int, fields: Mapping[str, str], place: str) -> None:
        if fields.get("TYPE") == "CONNECT" or "QMNAME" in fields:
            group = self.group_of(qmgr)
            if group and fields.get("QMNAME"):
                self._intake.facts.add_member(group, fields["QMNAME"], place)
            return
        if not {"ENTSMAX", "ENTSUSED"} & fields.keys():
            kind = f"CFSTATUS {fields.get('CFTYPE') or fields.get('TYPE', 'without ENTSMAX')}"
            self._pass_over(kind)
            return
        store = self.store_of(qmgr, fields["CFSTATUS"], place)
        if store is None:
            return
        measured: Measured = {}
        if fields.get("ENTSMAX", "").strip():
            measured["ents_max"] = _number(fields["ENTSMAX"])
        if fields.get("ENTSUSED", "").strip():
            measured["ents_used"] = _number(fields["ENTSUSED"])
        if not self._intake.is_consistent(measured, store, place):
            return
        if fields.get("SIZEMAX"):
            measured["size"] = parse_size(fields["SIZEMAX"], unit="K")
            self._intake.facts.add("structure", store, f"CFSTATUS, {place}", size=measured["size"])
        self.measurements.add(qmgr, time, store, measured)

    def _queue(self, qmgr: str, time: int, fields: Mapping[str, str], place: str) -> None:
        """Take a queue: of DISPLAY QSTATUS its depth, of DISPLAY QUEUE where it is, of one with ALL both."""
        queue = fields.get("QUEUE") or fields.get("QLOCAL") or fields.get("QSTATUS")
        if not queue:
            raise ValueError("a queue without a name")
        is_status = bool(fields.get("CURDEPTH"))
        kind = fields.get("TYPE", "QLOCAL")
        if kind not in _LOCAL:
            self._pass_over(f"QUEUE of TYPE({kind})")
            return
        if is_status:
            self._queue_status(qmgr, time, queue, fields, place)
        if not self._queue_definition(qmgr, queue, fields, place) and not is_status:
            self._pass_over("QUEUE without CFSTRUCT, STGCLASS or CURDEPTH")

    def _queue_status(self, qmgr: str, time: int, queue: str, fields: Mapping[str, str], place: str) -> None:
        depth = _number(fields["CURDEPTH"])
        if fields.get("CURFSIZE"):
            measured: Measured = {"messages": depth, "file_bytes": _number(fields["CURFSIZE"]) * MIB}
            if fields.get("CURMAXFS"):
                measured["file_max_bytes"] = _number(fields["CURMAXFS"]) * MIB
                maximum = measured["file_max_bytes"]
                self._intake.facts.add("queue_file", f"{qmgr}/{queue}", place, max_size=maximum)
            self._intake.facts.add("queue_manager", qmgr, place, platform="distributed")
            self.measurements.add(qmgr, time, f"{qmgr}/{queue}", measured)
        else:
            self.measurements.add_depth(qmgr, time, queue, depth)

    def _queue_definition(self, qmgr: str, queue: str, fields: Mapping[str, str], place: str) -> bool:
        """Take where a queue is; return False if the object does not show it."""
        max_depth = _number(fields["MAXDEPTH"]) if fields.get("MAXDEPTH") else None
        if fields.get("CFSTRUCT"):
            store = self.store_of(qmgr, fields["CFSTRUCT"], place)
            if store is not None:
                key = f"{store.partition('/')[0]}/{queue}"
                self._intake.facts.add("structure", store, place)
                self._intake.facts.add("queue", key, place, structure=fields["CFSTRUCT"], max_depth=max_depth)
        elif fields.get("STGCLASS"):
            key = f"{qmgr}/{queue}"
            self._intake.facts.add("queue", key, place, storage_class=fields["STGCLASS"], max_depth=max_depth)
        else:
            return False
        return True

    def _structure(self, qmgr: str, fields: Mapping[str, str], place: str) -> None:
        store = self.store_of(qmgr, fields["CFSTRUCT"], place)
        if store is None:
            return
        values: dict[str, Any] = {
            name: _number(fields[word]) for word, name in _CF_ATTRIBUTES.items() if fields.get(word)
        }
        values |= {name: parse_size(fields[word]) for word, name in _CF_SIZES.items() if fields.get(word)}
        if fields.get("OFFLOAD") in {"SMDS", "DB2", "NONE"}:
            values["offload"] = fields["OFFLOAD"]
        if fields.get("DSEXPAND") in {"YES", "NO"}:
            values["ds_expand"] = fields["DSEXPAND"] == "YES"
        self._intake.facts.add("structure", store, place, **values)

    def _data_set(self, qmgr: str, fields: Mapping[str, str], place: str) -> None:
        store = self.store_of(qmgr, fields["CFSTRUCT"], place)
        if store is not None:
            self._intake.facts.add("smds", f"{store}/{fields['SMDS']}", place)

    def _queue_manager(self, fields: Mapping[str, str], place: str) -> None:
        name, platform = fields["QMNAME"], fields.get("PLATFORM")
        level = fields.get("CMDLEVEL", "")
        version = f"{int(level[:-2])}.{int(level[-2])}" if level.isdigit() and len(level) in {3, 4} else None
        kind = None if platform is None else "zos" if platform in {"MVS", "ZOS"} else "distributed"
        self._intake.facts.add("queue_manager", name, place, platform=kind, version=version)
        if fields.get("QSGNAME"):
            self._intake.facts.add_member(fields["QSGNAME"], name, place)


def _number(text: str) -> int:
    """Return a count. Raise ValueError if it is none."""
    if not (text.isascii() and text.isdigit() and len(text) <= 15):
        raise ValueError(f"{text!r} is not a count")
    return int(text)
