"""Events of producers, decoded into rows for the store twins.

`Decoder` converts records of the events topic (JSON, NDJSON, Arrow) and tables of recordings to `Decoded`: rows of
`kernels.EVENT`, and a `Reject` with its `Reason` for every event that is refused. `EventBlock` is an event batch of one
store. The fields are described in docs/events.md.
"""

from twin.events.convert import ARROW_SCHEMA, from_table, to_table
from twin.events.decoded import BlockError, Decoded, EventBlock, Reject
from twin.events.decoder import ARROW, CONTENT_TYPES, JSON, NDJSON, Decoder, content_type
from twin.events.fields import Event, Measured
from twin.events.refusals import EventError, Reason

__all__ = [
    "ARROW",
    "ARROW_SCHEMA",
    "CONTENT_TYPES",
    "JSON",
    "NDJSON",
    "BlockError",
    "Decoded",
    "Decoder",
    "Event",
    "EventBlock",
    "EventError",
    "Measured",
    "Reason",
    "Reject",
    "content_type",
    "from_table",
    "to_table",
]
