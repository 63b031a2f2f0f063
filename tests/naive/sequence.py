"""Sequence numbers: one numbering per queue manager and name of a queue in its events.

The rule: docs/events.md#duplicates-gaps-and-late-events.
"""

WINDOW = 4096  # numbers remembered per numbering


class NaiveNumbering:
    """The numbers of a (queue manager, queue), with every number ever seen in a list."""

    def __init__(self, qmgr: str, queue: str) -> None:
        self.qmgr = qmgr
        self.queue = queue
        self.seen: list[int] = []  # in the order of arrival; the first one starts the numbering


class NaiveSequences:
    """All numberings of a store, and the count of missing numbers."""

    def __init__(self) -> None:
        self.numberings: list[NaiveNumbering] = []
        self.gaps = 0

    def is_duplicate(self, qmgr: str, queue: str, seq: int) -> bool:
        """Take the next number of a (queue manager, queue); return True if its event must be ignored.

        The first number seen starts the numbering: there is no gap before it, and smaller ones are late. After a number
        beyond the highest, the numbers between them are missing. One of the last 4,096 numbers, counted back from the
        highest, is a duplicate if it was seen. Otherwise it is late: it is accepted and closes its gap. An older number
        counts as a duplicate.
        """
        numbering = self._numbering(qmgr, queue)
        if not numbering.seen:
            numbering.seen.append(seq)
            return False
        first, highest = numbering.seen[0], max(numbering.seen)
        if seq <= highest - WINDOW or seq in numbering.seen:
            return True
        if seq > highest:
            self.gaps += seq - highest - 1
        elif seq > first:
            self.gaps -= 1
        numbering.seen.append(seq)
        return False

    def restart(self, qmgr: str) -> None:
        """Restart every numbering of a queue manager. Missing numbers stay missing."""
        self.numberings = [numbering for numbering in self.numberings if numbering.qmgr != qmgr]

    def _numbering(self, qmgr: str, queue: str) -> NaiveNumbering:
        for numbering in self.numberings:
            if numbering.qmgr == qmgr and numbering.queue == queue:
                return numbering
        self.numberings.append(NaiveNumbering(qmgr, queue))
        return self.numberings[-1]
