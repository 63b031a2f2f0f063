"""Events: what producers send, decoded into rows that the stores take.

`Decoder` turns records of the events topic (JSON, NDJSON, Arrow) and tables of recordings into `Decoded`: rows of
`kernels.EVENT`, and a `Reject` with its `Reason` for whatever cannot be taken. `EventBlock` is the events of one store.
"""

from twin.events.block import BlockError, EventBlock
from twin.events.convert import ARROW_SCHEMA, from_table, to_table
from twin.events.decoded import Decoded, Reject
from twin.events.decoder import ARROW, CONTENT_TYPES, JSON, NDJSON, Decoder, content_type
from twin.events.reasons import EventError, Reason

__all__ = [
    "ARROW",
    "ARROW_SCHEMA",
    "CONTENT_TYPES",
    "JSON",
    "NDJSON",
    "BlockError",
    "Decoded",
    "Decoder",
    "EventBlock",
    "EventError",
    "Reason",
    "Reject",
    "content_type",
    "from_table",
    "to_table",
]
