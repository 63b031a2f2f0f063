"""Answers of the MQ administrative REST interface to MQSC commands in JSON (`runCommandJSON`).

[IBM: MQ 9.4, POST /admin/action/qmgr/{qmgrName}/mqsc]. The queue manager is in the address, not in the answer.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from typing_extensions import override

from twin.feeds.intake import Event, Intake
from twin.feeds.json_objects import json_objects
from twin.feeds.mqsc_objects import MqscObjects
from twin.feeds.protocol import Feed, FeedOptions, Page

_ADDRESS = re.compile(r"/qmgr/([^/?]+)/")


class RestFeed(Feed):
    """Reader of answers, one or several in a page."""

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
            self.intake.complain("no-qmgr", page.name, "no queue manager in the address; expected: --qmgr")
            return
        for answer, place in json_objects(page, self.intake):
            responses = answer.get("commandResponse")
            if not isinstance(responses, list):
                self.intake.complain("foreign", place, "no commandResponse; expected: an answer to runCommandJSON")
                continue
            for number, response in enumerate(responses):
                fields = _parameters(response)
                if fields is None:
                    text = "no object with parameters; expected: completionCode, reasonCode, parameters"
                    self.intake.complain("bad-json", f"{place}, response {number}", text)
                elif fields:
                    self._objects.take(qmgr, page.time, fields, f"{place}, response {number}")
        yield from self._objects.measures()


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
