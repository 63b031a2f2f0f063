"""Sequence numbers: one numbering for each (queue manager, queue as its events report it)."""

REMEMBERED = 4096  # contract.md, 7 (Events): "the last 4,096 numbers of a (qmgr, queue) are remembered"


class NaiveNumbering:
    """The numbers of one (queue manager, queue). Every number ever seen is kept in a list."""

    def __init__(self, qmgr: str, queue: str) -> None:
        self.qmgr = qmgr
        self.queue = queue
        self.seen: list[int] = []  # in the order they came; the first of them is where the numbering starts


class NaiveSequences:
    """Every numbering of a store, and how many numbers are missing now."""

    def __init__(self) -> None:
        self.numberings: list[NaiveNumbering] = []
        self.gaps = 0

    def is_duplicate(self, qmgr: str, queue: str, seq: int) -> bool:
        """Take the next number of a (queue manager, queue); True when its event must be ignored.

        contract.md, 7 (Events): the first number seen starts the numbering: no gap before it, smaller ones are late.
        A number beyond the highest leaves the numbers between them missing. One of the last 4,096 numbers (counted
        back from the highest) is a duplicate if it was seen, else it is late: accepted, and its gap is closed. An
        older one counts as a duplicate.
        """
        numbering = self._numbering(qmgr, queue)
        if not numbering.seen:
            numbering.seen.append(seq)
            return False
        first, highest = numbering.seen[0], max(numbering.seen)
        if seq <= highest - REMEMBERED or seq in numbering.seen:
            return True
        if seq > highest:
            self.gaps += seq - highest - 1
        elif seq > first:
            self.gaps -= 1
        numbering.seen.append(seq)
        return False

    def restart(self, qmgr: str) -> None:
        """Begin every numbering of a queue manager anew; what was missing stays missing (contract.md, 7, Events)."""
        self.numberings = [numbering for numbering in self.numberings if numbering.qmgr != qmgr]

    def _numbering(self, qmgr: str, queue: str) -> NaiveNumbering:
        for numbering in self.numberings:
            if numbering.qmgr == qmgr and numbering.queue == queue:
                return numbering
        self.numberings.append(NaiveNumbering(qmgr, queue))
        return self.numberings[-1]
