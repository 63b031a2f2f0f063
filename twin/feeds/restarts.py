"""Restarts of queue managers by their messages: one restart is one event, however many messages and logs have it.

A queue manager that stops says CSQY009I and CSQ3104I; one that starts CSQY000I, CSQR001I when its restart begins, and
CSQY022I when it is ready [IBM: MQ for z/OS messages]. Units of work are backed out, and nonpersistent messages go, with
CSQR001I; a log that begins behind it has CSQY022I only. Job log and SYSLOG have the same messages, in any order of
files.
"""

from __future__ import annotations

STOPPING, STARTING = ("CSQY009I", "CSQ3104I"), ("CSQY000I", "CSQY001I")
BEGUN, STARTED = "CSQR001I", "CSQY022I"
_SAME_US = 60_000_000  # within which two logs may have one message [assumed]
_LONGEST_US = 4 * 3_600_000_000  # from CSQR001I to CSQY022I: much of the log may have to be read [assumed]
_MAX_KEPT = 100  # restarts of a queue manager


class Restarts:
    """Restarts so far: when each began and ended, by queue manager; one of which only one message came ends then."""

    def __init__(self) -> None:
        self._known: dict[str, list[list[int]]] = {}

    def is_new(self, qmgr: str, message_id: str, time: int) -> bool:
        """Return True if a message is about a restart that no other one was about."""
        if message_id not in (BEGUN, STARTED):
            return False
        known = self._known.setdefault(qmgr, [])
        for span in known:
            if span[0] - _SAME_US <= time <= span[1] + _SAME_US:
                span[0], span[1] = min(span[0], time), max(span[1], time)
                return False
        alone = [span for span in known if span[0] == span[1]]
        if message_id == STARTED:
            begun = [span for span in alone if 0 < time - span[0] <= _LONGEST_US]
            if begun:
                max(begun)[1] = time
                return False
        else:
            ended = [span for span in alone if 0 < span[0] - time <= _LONGEST_US]
            if ended:
                min(ended)[0] = time
                return False
        known.append([time, time])
        del known[:-_MAX_KEPT]
        return True
