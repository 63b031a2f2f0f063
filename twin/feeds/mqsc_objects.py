"""Objects and states that MQSC DISPLAY shows, whether as text or as JSON: measurements, and facts about the estate.

Sources: [IBM: MQ 9.4, DISPLAY CFSTATUS, DISPLAY QSTATUS, DISPLAY QUEUE, DISPLAY CFSTRUCT, DISPLAY STGCLASS]. SIZEMAX of
CFSTATUS is in KB, SIZEUSED a percentage of bytes; elements are not fields. CURFSIZE and CURMAXFS of QSTATUS are in MB,
rounded up.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from twin.feeds.intake import Event, Intake
from twin.units import MIB, parse_size

NAME_GROUP = "DISPLAY QMGR QSGNAME in front of it, --group QSG1=QM01,QM02, or an estate that names it"
_MAX_MEASURES = 100_000  # stores and times that wait for the end of a page
_CF_ATTRIBUTES = {
    "CFLEVEL": "cf_level",
    "OFFLD1TH": "offld1_th",
    "OFFLD2TH": "offld2_th",
    "OFFLD3TH": "offld3_th",
}
_CF_SIZES = {"OFFLD1SZ": "offld1_sz", "OFFLD2SZ": "offld2_sz", "OFFLD3SZ": "offld3_sz", "DSBLOCK": "ds_block"}


class MqscObjects:
    """Objects of one page; measurements of a store and time become one MEASURE."""

    def __init__(self, intake: Intake) -> None:
        """Start without objects."""
        self._intake = intake
        self._measured: dict[tuple[int, str, str], dict[str, Any]] = {}  # by time, queue manager, store
        self._depths: dict[tuple[int, str, str], dict[str, int]] = {}  # by time, queue manager, store; then by queue

    def take(self, qmgr: str, time: int, fields: Mapping[str, str], place: str) -> None:
        """Take an object.

        Args:
            qmgr: queue manager that answered.
            time: of the answer, microseconds since 1970.
            fields: values by keyword, in upper case.
            place: for complaints.
        """
        try:
            if "CFSTATUS" in fields:
                self._structure_status(qmgr, time, fields, place)
            elif "CURDEPTH" in fields and ("QUEUE" in fields or "QSTATUS" in fields):
                self._queue_status(qmgr, time, fields, place)
            elif "QUEUE" in fields or "QLOCAL" in fields:
                self._queue(qmgr, fields, place)
            elif "CFSTRUCT" in fields and "SMDS" not in fields and "SMDSCONN" not in fields:
                self._structure(qmgr, fields, place)
            elif "SMDS" in fields and "CFSTRUCT" in fields:
                self._data_set(qmgr, fields, place)
            elif "STGCLASS" in fields and "PSID" in fields:
                key = f"{qmgr}/{fields['STGCLASS']}"
                self._intake.seen.add("storage_class", key, place, page_set=int(fields["PSID"]))
            elif "QMNAME" in fields:
                self._queue_manager(fields, place)
            elif fields:
                self._intake.pass_over("object of DISPLAY that is not read", next(iter(fields)))
        except ValueError as error:
            self._intake.complain("bad-value", place, f"{error}; expected: values as DISPLAY shows them")

    def measure(self, qmgr: str, time: int, store: str, measured: Mapping[str, Any]) -> None:
        """Add fields to the measurement of a store."""
        key = (time, qmgr, store)
        if key not in self._measured and len(self._measured) >= _MAX_MEASURES:
            return
        merged = self._measured.setdefault(key, {})
        for name, value in measured.items():
            if isinstance(value, dict):
                merged.setdefault(name, {}).update(value)
            else:
                merged[name] = value

    def measures(self) -> Iterator[Event]:
        """Yield the measurements taken so far, by time, and forget them.

        Depths of queues are one of a store if every queue of the store was shown.
        """
        for (time, qmgr, store), depths in self._depths.items():
            estate = self._intake.estate
            config = None if estate is None else estate.stores.get(store)
            if config is not None and set(config.queues) <= depths.keys():
                self.measure(qmgr, time, store, {"messages": sum(depths[queue] for queue in config.queues)})
        for (time, qmgr, store), measured in sorted(self._measured.items(), key=lambda entry: entry[0]):
            yield {"time": time, "qmgr": qmgr, "op": "MEASURE", "store": store, "measured": measured}
        self._measured, self._depths = {}, {}

    def group_of(self, qmgr: str) -> str | None:
        """Return the queue-sharing group of a queue manager: that of the estate, else the one seen; or None."""
        estate = self._intake.estate
        known = None if estate is None else estate.queue_managers.get(qmgr)
        return (known.queue_sharing_group if known else None) or self._intake.seen.group_of(qmgr)

    def store_of(self, qmgr: str, structure: str, place: str) -> str | None:
        """Return the store name of a structure, or None, with a complaint, if the group is not known."""
        group = self.group_of(qmgr)
        if group is None:
            text = f"{structure} of {qmgr}, whose queue-sharing group is not known; expected: {NAME_GROUP}"
            self._intake.complain("no-group", place, text)
            return None
        return f"{group}/{structure}"

    def _structure_status(self, qmgr: str, time: int, fields: Mapping[str, str], place: str) -> None:
        if fields.get("TYPE") == "CONNECT" or "QMNAME" in fields:
            group = self.group_of(qmgr)
            if group and fields.get("QMNAME"):
                self._intake.seen.add_member(group, fields["QMNAME"], place)
            return
        if fields.get("CFTYPE") == "ADMIN" or not {"ENTSMAX", "ENTSUSED"} & fields.keys():
            kind = f"CFSTATUS {fields.get('CFTYPE') or fields.get('TYPE', 'without ENTSMAX')}"
            self._intake.pass_over("object of DISPLAY that is not read", kind)
            return
        store = self.store_of(qmgr, fields["CFSTATUS"], place)
        if store is None:
            return
        words = {"ents_max": "ENTSMAX", "ents_used": "ENTSUSED"}
        measured = {name: _number(fields[word]) for name, word in words.items() if fields.get(word, "").strip()}
        if not self._intake.is_consistent(measured, store, place):
            return
        if fields.get("SIZEMAX"):
            measured["size"] = parse_size(fields["SIZEMAX"], unit="K")
            self._intake.seen.add("structure", store, f"CFSTATUS, {place}", size=measured["size"])
        self.measure(qmgr, time, store, measured)

    def _queue_status(self, qmgr: str, time: int, fields: Mapping[str, str], place: str) -> None:
        queue = _queue_name(fields, "QSTATUS")
        depth = _number(fields["CURDEPTH"])
        if fields.get("CURFSIZE"):
            measured = {"messages": depth, "file_bytes": _number(fields["CURFSIZE"]) * MIB}
            if fields.get("CURMAXFS"):
                measured["file_max_bytes"] = _number(fields["CURMAXFS"]) * MIB
                maximum = measured["file_max_bytes"]
                self._intake.seen.add("queue_file", f"{qmgr}/{queue}", place, max_size=maximum)
            self._intake.seen.add("queue_manager", qmgr, place, platform="distributed")
            self.measure(qmgr, time, f"{qmgr}/{queue}", measured)
            return
        estate = self._intake.estate
        route = None if estate is None else estate.queue_routes.get((qmgr, queue))
        if estate is not None and route is not None:
            store = estate.routes[route].store
            self._depths.setdefault((time, qmgr, store), {})[str(estate.routes[route].queue)] = depth
        self._intake.check_queue(qmgr, queue, time)

    def _queue(self, qmgr: str, fields: Mapping[str, str], place: str) -> None:
        if fields.get("TYPE", "QLOCAL") not in {"QLOCAL", "QUEUE", "LOCAL"}:
            return
        queue = _queue_name(fields, "QLOCAL")
        if fields.get("CFSTRUCT"):
            group = self.group_of(qmgr)
            if group:
                self._intake.seen.add("structure", f"{group}/{fields['CFSTRUCT']}", place)
                self._intake.seen.add("queue", f"{group}/{queue}", place, structure=fields["CFSTRUCT"])
        elif fields.get("STGCLASS"):
            self._intake.seen.add("queue", f"{qmgr}/{queue}", place, storage_class=fields["STGCLASS"])

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
        self._intake.seen.add("structure", store, place, **values)

    def _data_set(self, qmgr: str, fields: Mapping[str, str], place: str) -> None:
        store = self.store_of(qmgr, fields["CFSTRUCT"], place)
        if store is not None:
            self._intake.seen.add("smds", f"{store}/{fields['SMDS']}", place)

    def _queue_manager(self, fields: Mapping[str, str], place: str) -> None:
        name, platform = fields["QMNAME"], fields.get("PLATFORM")
        level = fields.get("CMDLEVEL", "")
        version = f"{int(level[:-2])}.{int(level[-2])}" if level.isdigit() and len(level) in {3, 4} else None
        kind = None if platform is None else "zos" if platform in {"MVS", "ZOS"} else "distributed"
        self._intake.seen.add("queue_manager", name, place, platform=kind, version=version)
        if fields.get("QSGNAME"):
            self._intake.seen.add_member(fields["QSGNAME"], name, place)


def _queue_name(fields: Mapping[str, str], other: str) -> str:
    """Return the name of a queue, of the keyword QUEUE or another. Raise ValueError if it is empty."""
    name = fields.get("QUEUE") or fields.get(other)
    if not name:
        raise ValueError("a queue without a name")
    return name


def _number(text: str) -> int:
    """Return a count. Raise ValueError if it is none."""
    if not (text.isascii() and text.isdigit() and len(text) <= 15):
        raise ValueError(f"{text!r} is not a count")
    return int(text)
