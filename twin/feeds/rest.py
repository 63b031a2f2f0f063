"""Answers of the administrative REST interface to MQSC commands.

`runCommandJSON` gives objects in JSON, `runCommand` the lines of the command server as text: CSQM4nnI on z/OS, those
of runmqsc elsewhere [IBM: MQ 9.4, POST /admin/action/qmgr/{qmgrName}/mqsc]. The queue manager is in the address, not in
the answer.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from typing_extensions import override

from twin.events import Event
from twin.feeds.display import DisplayFeed
from twin.feeds.intake import Intake
from twin.feeds.json_pages import json_objects
from twin.feeds.protocol import Feed, FeedOptions, Page

_MAX_FAILURE = 500  # characters
_ADDRESS = re.compile(r"/qmgr/([^/?]+)/")


class RestFeed(Feed):
    """Reader of answers, one or several in a page."""

    reads = "answers to runCommandJSON or runCommand"

    def __init__(self, intake: Intake, options: FeedOptions) -> None:
        """Start without input."""
        super().__init__(intake, options)
        self._texts = DisplayFeed(intake, options)
        self._objects = self._texts.objects

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
                elif not response.get("reasonCode"):
                    self._texts.take_answer(_texts(response), qmgr, page.time, f"{place}, response {number}")
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
    words = [text.strip() for text in _texts(response)]
    return f"reason {reason}" + (f": {' '.join(words)}" if words else "")


def _texts(response: Mapping[str, Any]) -> list[str]:
    """Return the lines of a response."""
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
