"""Objects and states that MQSC DISPLAY shows, whether as text or as JSON: measurements, and facts about the estate.

Sources: [IBM: MQ 9.4, DISPLAY CFSTATUS, DISPLAY QSTATUS, DISPLAY QUEUE, DISPLAY CFSTRUCT, DISPLAY STGCLASS]. SIZEMAX of
CFSTATUS is in KB, SIZEUSED a percentage of bytes; elements are not fields. CURFSIZE and CURMAXFS of QSTATUS are in MB,
rounded up.

The administrative REST interface shows them in JSON (`runCommandJSON`) [IBM: MQ 9.4, POST
/admin/action/qmgr/{qmgrName}/mqsc]. The queue manager is in the address, not in the answer.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from typing_extensions import override

from twin.events import Event, Measured
from twin.feeds.intake import Intake
from twin.feeds.json_pages import json_objects
from twin.feeds.measurements import Measurements
from twin.feeds.protocol import Feed, FeedOptions, Page
from twin.units import MIB, parse_size

NAME_GROUP = "DISPLAY QMGR QSGNAME in front of it, --group QSG1=QM01,QM02, or an estate that names it"
_CF_ATTRIBUTES = {
    "CFLEVEL": "cf_level",
    "OFFLD1TH": "offld1_th",
    "OFFLD2TH": "offld2_th",
    "OFFLD3TH": "offld3_th",
}
_CF_SIZES = {"OFFLD1SZ": "offld1_sz", "OFFLD2SZ": "offld2_sz", "OFFLD3SZ": "offld3_sz", "DSBLOCK": "ds_block"}
_MAX_FAILURE = 500  # characters
_ADDRESS = re.compile(r"/qmgr/([^/?]+)/")


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
                self._intake.facts.add("storage_class", key, place, page_set=int(fields["PSID"]))
            elif "QMNAME" in fields:
                self._queue_manager(fields, place)
            elif fields:
                self._intake.pass_over("object of DISPLAY that is not read", next(iter(fields)))
        except ValueError as error:
            self._intake.complain("bad-value", place, f"{error}; expected: values as DISPLAY shows them")

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
            self._intake.pass_over("object of DISPLAY that is not read", kind)
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

    def _queue_status(self, qmgr: str, time: int, fields: Mapping[str, str], place: str) -> None:
        queue = _queue_name(fields, "QSTATUS")
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

    def _queue(self, qmgr: str, fields: Mapping[str, str], place: str) -> None:
        if fields.get("TYPE", "QLOCAL") not in {"QLOCAL", "QUEUE", "LOCAL"}:
            return
        queue = _queue_name(fields, "QLOCAL")
        if fields.get("CFSTRUCT"):
            group = self.group_of(qmgr)
            if group:
                self._intake.facts.add("structure", f"{group}/{fields['CFSTRUCT']}", place)
                self._intake.facts.add("queue", f"{group}/{queue}", place, structure=fields["CFSTRUCT"])
        elif fields.get("STGCLASS"):
            self._intake.facts.add("queue", f"{qmgr}/{queue}", place, storage_class=fields["STGCLASS"])

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


# --- REST -------------------------------------------------------------------------------------------------------------


class RestFeed(Feed):
    """Reader of answers, one or several in a page."""

    reads = "answers to runCommandJSON"

    def __init__(self, intake: Intake, options: FeedOptions) -> None:
        """Start without input."""
        super().__init__(intake, options)
        self._objects = MqscObjects(intake)

    @override
    def take(self, page: Page) -> Iterator[Event]:
        """Yield the measurements of the answers; their time is that of their collection."""
        address = _ADDRESS.search(page.name)
        qmgr = address[1] if address else self.options.qmgr
        if qmgr is None or page.time is None:
            self.object_count += 1  # not looked at
            self.intake.complain("no-qmgr", page.name, "no queue manager in the address; expected: --qmgr")
            return
        for answer, place in json_objects(page, self.intake):
            responses = answer.get("commandResponse")
            if not isinstance(responses, list):
                self.intake.complain("foreign", place, "no commandResponse; expected: an answer to runCommandJSON")
                continue
            self.object_count += 1
            self._check(answer, responses, place)
            for number, response in enumerate(responses):
                fields = _parameters(response)
                if fields is None:
                    text = "no object with parameters; expected: completionCode, reasonCode, parameters"
                    self.intake.complain("bad-json", f"{place}, response {number}", text)
                elif fields:
                    self._objects.take(qmgr, page.time, fields, f"{place}, response {number}")
        yield from self._objects.measurements.events()

    def _check(self, answer: Mapping[str, Any], responses: list[Any], place: str) -> None:
        """Complain about an answer to a command that failed, such as a DISPLAY of what is not there."""
        code, reason = answer.get("overallCompletionCode", 0), answer.get("overallReasonCode", 0)
        if not code and not reason:
            return
        words = [_failure(response) for response in responses if isinstance(response, dict)]
        texts = ", ".join([f"overallReasonCode {reason}", *filter(None, words)])[:_MAX_FAILURE]
        self.intake.complain("command-failed", place, f"the command failed: {texts}; expected: reason 0")


def _failure(response: Mapping[str, Any]) -> str | None:
    """Return the reason and the messages of a response to a command that failed; None of one that did not."""
    reason = response.get("reasonCode")
    if not reason:
        return None
    texts = response.get("message", response.get("text", ()))
    words = [str(text).strip() for text in (texts if isinstance(texts, list) else [texts])] if texts else []
    return f"reason {reason}" + (f": {' '.join(words)}" if words else "")


def _parameters(response: Any) -> dict[str, str] | None:
    """Return the values of a response by keyword; none of a response without parameters, None if it is no response."""
    if not isinstance(response, dict):
        return None
    parameters = response.get("parameters", {})
    if not isinstance(parameters, dict):
        return None
    return {
        word.upper(): str(value).strip() for word, value in parameters.items() if isinstance(value, str | int | float)
    }
