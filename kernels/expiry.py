"""Expiry of messages: a scan of the queue manager, and gets that meet what has expired, remove it.

Until then an expired message holds its storage. An uncommitted one does not expire before its unit ends. Sources: [IBM:
IBM MQ, MQMD Expiry] (what a get meets is discarded), [IBM: IBM MQ, ALTER QMGR EXPRYINT] (the scan);
docs/storage-model.md#expiry.
"""

from __future__ import annotations

from kernels import messages
from kernels._compile import routine
from kernels.layout import AVAILABLE, FREE, NEVER, Store

_NEVER_SOON = 1 << 62  # behind every time


@routine
def scan(store: Store, time: int) -> None:
    """Remove every available message that has expired by `time`, microseconds."""
    if store.params[0].expires_from > time:
        return
    earliest = _NEVER_SOON
    for row in range(store.scalars[0].message_high):
        message = store.messages[row]
        if message.state == FREE or message.expires == 0:
            continue
        if message.state == AVAILABLE and message.expires <= time:
            messages.remove_expired(store, row)
        else:
            earliest = min(earliest, message.expires)
    store.params[0].expires_from = earliest


@routine
def next_expiry(store: Store, time: int) -> int:
    """Return a time before which no available message expires, microseconds; NEVER: none does.

    Where it is not after `time`, it is when the first one expires or has expired: an uncommitted message that has
    expired must not let a scan seem due for ever.
    """
    earliest = store.params[0].expires_from
    if earliest > time:
        return NEVER if earliest == _NEVER_SOON else int(earliest)
    earliest = _NEVER_SOON
    for row in range(store.scalars[0].message_high):
        message = store.messages[row]
        if message.state == AVAILABLE and message.expires != 0:
            earliest = min(earliest, message.expires)
    return NEVER if earliest == _NEVER_SOON else int(earliest)


@routine
def count_expired(store: Store) -> int:
    """Return the messages that hold storage although they have expired by the store's clock."""
    params, clock = store.params[0], store.scalars[0].clock
    count, earliest = 0, _NEVER_SOON
    if store.scalars[0].expiring == 0 or params.expires_from > clock:
        return count
    for row in range(store.scalars[0].message_high):
        message = store.messages[row]
        if message.state != FREE and message.expires != 0:
            earliest = min(earliest, message.expires)
            count += message.expires <= clock
    params.expires_from = earliest
    return count
