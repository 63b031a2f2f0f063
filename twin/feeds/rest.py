"""Answers of the REST interface to commands: one by one, or those of a round together.

`runCommandJSON` returns objects in JSON, `runCommand` the lines of the command server as text: CSQM4nnI on z/OS, those
of runmqsc elsewhere [IBM: MQ 9.4, POST /admin/action/qmgr/{qmgrName}/mqsc]. The queue manager is in the address, not in
the answer. On z/OS CSQN205I is in front of an answer, with a return code and a reason, of which 4 says that more
follows [IBM: MQ 9.2, Interpreting the reply messages from the command server], and CSQN121I says which member it is of.
A round is the answers to all commands of one poll. Its pages have headers: `mqweb.round`, its start; `mqweb.command`,
the command in words; `mqweb.qmgr`, the queue manager that it is about; and `mqweb.last`, "1" on its last page.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

from typing_extensions import override

from twin.estate import EstateError, Structure, parse_attributes
from twin.feeds.display import DisplayFeed
from twin.feeds.intake import Complaint, Intake, Item
from twin.feeds.json_pages import json_objects
from twin.feeds.measurements import members_of, note_unknown_queue
from twin.feeds.mqsc_objects import Definition
from twin.feeds.protocol import Feed, FeedOptions, Page

_EXPECTED = "expected: this in the estate, as mqtwin estate import or mqtwin start --live writes it"


class Definitions:
    """Definitions that differ from the estate, or from what was announced last, which the feed keeps.

    What ALTER CFSTRUCT takes is an ALTER. A queue has no event for its MAXDEPTH or its place, and the running job takes
    no new queue or structure: these are complaints, as only a changed estate and a restart of the job help.
    """

    def __init__(self, feed: Feed) -> None:
        self._feed = feed
        self._intake = feed.intake

    def changes(self, definitions: Iterable[Definition]) -> Iterator[Item]:
        """Yield the ALTERs of changed structures, once until they change again, and complaints; of an object the last
        counts.
        """
        if self._intake.estate is None:
            return
        latest = {(definition.section, definition.key): definition for definition in definitions}
        for (section, _), definition in sorted(latest.items()):
            yield from self._structure(definition) if section == "structure" else self._queue(definition)

    def _structure(self, definition: Definition) -> Iterator[Item]:
        store, estate = definition.key, self._intake.estate
        config = None if estate is None else estate.structures.get(store)
        if estate is not None and config is None:
            group = store.partition("/")[0]
            self._intake.note_unknown(
                min(members_of(estate, group), default=definition.qmgr), definition.time, store=store
            )
        if config is None or config.known_by_levels:
            return
        announced = self._announced(config)
        changed = {
            name: value
            for name, value in definition.values.items()
            if value != announced.get(name, getattr(config, name))
        }
        subject = f"definition of {store}"
        if not changed:
            yield from self._feed.lasting(subject, None)
            return
        try:
            parse_attributes(config, "ALTER", changed)
        except EstateError as error:
            yield from self._feed.lasting(subject, Complaint("definition-changed", definition.place, str(error)))
            return
        yield from self._feed.lasting(subject, None)
        self._feed.announced[store] = {
            name: (value, getattr(config, name)) for name, value in (announced | changed).items()
        }
        yield {"time": definition.time, "qmgr": definition.qmgr, "op": "ALTER", "store": store, "attributes": changed}

    def _announced(self, config: Structure) -> dict[str, Any]:
        """Return what was announced of a structure, but for what the estate has otherwise since: the job takes it."""
        before = self._feed.announced.get(config.name, {})
        return {name: value for name, (value, described) in before.items() if described == getattr(config, name, None)}

    def _queue(self, definition: Definition) -> Iterator[Item]:
        estate = self._intake.estate
        if estate is None:
            return
        queue = definition.key.partition("/")[2]
        number = estate.queue_routes.get((definition.qmgr, queue))
        if number is None:
            note_unknown_queue(self._intake, definition.qmgr, definition.time, queue)
            return
        store = estate.routes[number].store
        known = {"store": store, "MAXDEPTH": estate.max_depths.get(store, {}).get(queue)}
        seen = {"store": self._store_of(definition), "MAXDEPTH": definition.values["max_depth"]}
        changed = [
            f"{word} {seen[word]}, in the estate {value}"
            for word, value in known.items()
            if value is not None and seen[word] is not None and seen[word] != value
        ]
        text = f"queue {definition.key}: {', '.join(changed)}; {_EXPECTED}"
        complaint = Complaint("definition-changed", definition.place, text) if changed else None
        yield from self._feed.lasting(f"definition of {definition.key}", complaint)

    def _store_of(self, definition: Definition) -> str | None:
        """Return the store where a queue is defined to be; None if the page set of its storage class is not known."""
        owner = definition.key.partition("/")[0]
        if "structure" in definition.values:
            return f"{owner}/{definition.values['structure']}"
        storage_class = f"{owner}/{definition.values['storage_class']}"
        number = self._intake.facts.value("storage_class", storage_class, "page_set")
        return None if number is None else f"{owner}/PS{number:02d}"


ROUND, COMMAND, QMGR, LAST = "mqweb.round", "mqweb.command", "mqweb.qmgr", "mqweb.last"  # headers of pages

_MAX_FAILURE = 500  # characters
_ADDRESS = re.compile(r"/qmgr/([^/?]+)/")
_CODES = re.compile(r"CSQN205I\s+COUNT=\s*[0-9]+, RETURN=([0-9A-F]{8}), REASON=([0-9A-F]{8})")
_REFUSED = re.compile(r"CSQ[A-Z0-9][0-9]{3}[DES] ")  # message of an error
_MORE = 4  # reason, with completion 0: more answers follow


@dataclass(slots=True)
class _Round:
    """A round whose last page has not come yet."""

    name: str
    of_queues: set[str] = field(default_factory=set)  # queue managers that were asked for the state of queues
    answered: set[str] = field(default_factory=set)  # of these, without an error


class RestFeed(Feed):
    """Reader of answers, one or several in a page."""

    reads = "answers to runCommandJSON or runCommand"
    is_json = True

    def __init__(self, intake: Intake, options: FeedOptions) -> None:
        super().__init__(intake, options)
        self._texts = DisplayFeed(intake, options)
        self._objects = self._texts.objects
        self._definitions = Definitions(self)
        self._round: _Round | None = None
        self._silent: set[str] = set()  # members that have not answered about their handles

    @override
    def take(self, page: Page) -> Iterator[Item]:
        """Yield the measurements of the answers; their time is that of their collection. Those of a round wait."""
        name = page.headers.get(ROUND)
        if self._round is not None and self._round.name != name:
            yield from self._end_round()
        if name is None:
            yield from self._answers(page)
            yield from self._objects.measurements.events()
            return
        if self._round is None:
            self._round = _Round(name)
            self._objects.definitions = []
        yield from self._answers(page)
        if page.headers.get(LAST) == "1" or self._objects.measurements.is_full:
            yield from self._end_round()

    @override
    def finish(self) -> Iterator[Item]:
        """Yield what a round that has no last page has shown."""
        yield from self._end_round()

    def _answers(self, page: Page) -> Iterator[Item]:
        address = _ADDRESS.search(page.name)
        qmgr = page.headers.get(QMGR) or (unquote(address[1]) if address else self.options.qmgr)
        if qmgr is None or page.time is None:
            self.object_count += 1  # not looked at
            yield Complaint("no-qmgr", page.name, "no queue manager in the address; expected: --qmgr")
            return
        for item in json_objects(page):
            if isinstance(item, Complaint):
                yield item
                continue
            answer, place = item
            responses = answer.get("commandResponse")
            if not isinstance(responses, list):
                yield Complaint("foreign", place, "no commandResponse; expected: an answer to runCommandJSON")
                continue
            self.object_count += 1
            yield from self._note(page, qmgr, _failure_of(answer, responses, place))
            for number, response in enumerate(responses):
                fields = _parameters(response)
                if fields is None:
                    text = "no object with parameters; expected: completionCode, reasonCode, parameters"
                    yield Complaint("bad-json", f"{place}, response {number}", text)
                elif fields:
                    yield from self._objects.take(qmgr, page.time, fields, f"{place}, response {number}")
                elif not ("parameters" in response or response.get("reasonCode") or _texts(response)):
                    text = "a response without parameters, message and text; expected: one of them"
                    yield Complaint("not-understood", f"{place}, response {number}", text)
                elif not _reason_of(response):
                    yield from self._texts.take_answer(_texts(response), qmgr, page.time, f"{place}, response {number}")

    def _note(self, page: Page, qmgr: str, failure: Complaint | None) -> Iterator[Complaint]:
        """Complain about a command that failed, in a round once until it succeeds or fails otherwise."""
        if self._round is None:
            yield from () if failure is None else (failure,)
            return
        command = page.headers.get(COMMAND, "")
        if "QSTATUS" in command.upper():
            self._round.of_queues.add(qmgr)
            self._round.answered |= {qmgr} if failure is None else set()
        yield from self.lasting(f"{qmgr}: {command}", failure)

    def _end_round(self) -> Iterator[Item]:
        """Yield what the pages of a round show together: measurements, then changed definitions."""
        ended, self._round = self._round, None
        if ended is None:
            return
        yield from self._missing(ended)
        yield from self._objects.measurements.events(is_round=True)
        definitions, self._objects.definitions = self._objects.definitions or (), None
        yield from self._definitions.changes(definitions)

    def _missing(self, ended: _Round) -> Iterator[Complaint]:
        """Complain about members of a group that have not answered about their handles, once each until they do."""
        estate = self.intake.estate
        if estate is None:
            return
        answered = ended.answered | self._objects.measurements.answering
        self._silent -= answered
        for group in sorted(filter(None, {self.intake.group_of(qmgr) for qmgr in ended.of_queues})):
            members = members_of(estate, group)
            silent = [member for member in members if member not in answered]
            if not self._silent.issuperset(silent):
                self._silent.update(silent)
                names = ", ".join(member for member in members if member in answered) or "no member"
                text = f"no answer of {', '.join(silent)} to DISPLAY QSTATUS; of {group} {names} answered"
                text += "; expected: an answer of each member, without which no shared queue is known to be unread"
                yield Complaint("no-answer", group, text)


def _failure_of(answer: Mapping[str, Any], responses: list[Any], place: str) -> Complaint | None:
    """Return a complaint about a command that failed, wholly or in part, such as a DISPLAY of what is not there."""
    code, reason = answer.get("overallCompletionCode", 0), answer.get("overallReasonCode", 0)
    reason = 0 if not code and reason == _MORE else reason
    words = [_failure(response) for response in responses if isinstance(response, dict)]
    refused = [text for text in words if text]
    if not code and not reason and not refused:
        return None
    texts = ", ".join([f"overallReasonCode {reason}", *refused])[:_MAX_FAILURE]
    return Complaint("command-failed", place, f"the command failed: {texts}; expected: reason 0")


def _failure(response: Mapping[str, Any]) -> str | None:
    """Return the reason and the messages of a response to a command that failed; None of one that did not."""
    reason = _reason_of(response)
    texts = [text.strip() for text in _texts(response)]
    if reason:
        return f"reason {reason}" + (f": {' '.join(texts)}" if texts else "")
    codes = [match for text in texts if (match := _CODES.match(text)) is not None]
    if all(int(match[1], 16) == 0 and int(match[2], 16) in {0, _MORE} for match in codes):
        return None
    return " ".join(text for text in texts if _CODES.match(text) or _REFUSED.match(text))


def _reason_of(response: Mapping[str, Any]) -> Any:
    """Return the reason why a response is no success; 0 or None of one that is."""
    reason = response.get("reasonCode")
    return 0 if reason == _MORE and not response.get("completionCode") else reason


def _texts(response: Mapping[str, Any]) -> list[str]:
    texts = response.get("message", response.get("text", ()))
    return [str(text) for text in (texts if isinstance(texts, list) else [texts])] if texts else []


def _parameters(response: Any) -> dict[str, str] | None:
    """Return the values of a response by keyword; none of one without parameters, None if it is not a response."""
    if not isinstance(response, dict):
        return None
    parameters = response.get("parameters", {})
    if not isinstance(parameters, dict):
        return None
    return {
        word.upper(): str(value).strip() for word, value in parameters.items() if isinstance(value, str | int | float)
    }
