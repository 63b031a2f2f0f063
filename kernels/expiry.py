"""Expiry of messages: a scan of the queue manager, and gets that meet what has expired, remove it.

Until then an expired message holds its storage. An uncommitted one does not expire before its unit ends.

Sources: [IBM: IBM MQ, MQMD Expiry] (what a get meets is discarded), [IBM: IBM MQ, ALTER QMGR EXPRYINT] (the scan);
docs/storage-model.md#expiry.
"""

from __future__ import annotations

from kernels import messages
from kernels._compile import routine
from kernels.layout import AVAILABLE, FREE, NEVER, Store


@routine
def scan(store: Store, time: int) -> None:
    """Remove every available message that has expired by `time`, microseconds."""
    for row in range(store.scalars[0].message_high):
        message = store.messages[row]
        if message.state == AVAILABLE and message.expires != 0 and message.expires <= time:
            messages.remove_expired(store, row)


@routine
def next_expiry(store: Store) -> int:
    """Return the time at which the next available message expires, or has expired, microseconds; NEVER: none does."""
    earliest = NEVER
    for row in range(store.scalars[0].message_high):
        message = store.messages[row]
        if message.state == AVAILABLE and message.expires != 0 and (earliest == NEVER or message.expires < earliest):
            earliest = int(message.expires)
    return earliest


@routine
def count_expired(store: Store) -> int:
    """Return the messages that hold storage although they have expired by the store's clock."""
    count = 0
    if store.scalars[0].expiring == 0:
        return count
    for row in range(store.scalars[0].message_high):
        message = store.messages[row]
        if message.state != FREE and message.expires != 0 and message.expires <= store.scalars[0].clock:
            count += 1
    return count
