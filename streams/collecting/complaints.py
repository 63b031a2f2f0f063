"""Complaints of a collector as dead letters, each with its reason and the page it is about.

Of a code the first ones are sent, later at most one a minute, with the number so far: sizes that are never told must
not fill the topic.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable

from streams.kafka.letters import DeadLetter
from twin.feeds import Complaint, Intake, Page
from twin.feeds.intake import MAX_EXAMPLES

UNKNOWN_NAME = "unknown-name"  # reason of a name that the estate lacks, once for each
_INTERVAL_S = 60.0


class ComplaintLetters:
    """New complaints and unknown names of an intake as dead letters.

    Args:
        intake: of the feed.
        source: name of the source, a topic or address.
        send: takes the dead letters.
        monotonic: clock, seconds.
    """

    def __init__(
        self,
        intake: Intake,
        source: str,
        send: Callable[[DeadLetter], None],
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._intake = intake
        self._source = source
        self._send = send
        self._monotonic = monotonic
        self._counts: Counter[str] = Counter(intake.counts)
        self._sent: Counter[str] = Counter()
        self._sent_at: dict[str, float] = {}
        self._names: set[tuple[str, str]] = set(intake.unknown)

    def send_new(self, page: Page | None = None) -> None:
        """Send what has come up since the last call, one dead letter for each code and unknown name.

        Args:
            page: that it is about; None: it is about no page.
        """
        if self._counts != self._intake.counts:
            for code, count in self._intake.counts.items():
                if count > self._counts[code] and self._is_due(code):
                    self._send(self._letter(self._intake.latest[code], count, page))
            self._counts = Counter(self._intake.counts)
        if len(self._intake.unknown) > len(self._names):
            for key in [key for key in self._intake.unknown if key not in self._names]:
                self._names.add(key)
                text = f"{'/'.join(filter(None, key))} is not in the estate; expected: a line for it, or no such data"
                self._send(self._letter(Complaint(UNKNOWN_NAME, self._source, text), 1, page))

    def _is_due(self, code: str) -> bool:
        now = self._monotonic()
        if self._sent[code] >= MAX_EXAMPLES and now - self._sent_at[code] < _INTERVAL_S:
            return False
        self._sent[code] += 1
        self._sent_at[code] = now
        return True

    def _letter(self, complaint: Complaint, count: int, page: Page | None) -> DeadLetter:
        headers = page.headers if page is not None else {}
        value = bytes(page.data) if page is not None else b""
        detail = f"{complaint.place}: {complaint.text}"
        return DeadLetter(
            reason=complaint.code,
            detail=detail if count == 1 else f"{detail} ({count:,} such complaints so far)",
            topic=self._source,
            partition=int(headers.get("kafka.partition", -1)),
            offset=int(headers.get("kafka.offset", -1)),
            index=0,
            value=value,
            length=len(value),
        )
