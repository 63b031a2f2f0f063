"""The live twin of IBM MQ storage, without Spark and without Kafka: for notebooks, tests and the stream alike.

Estate: `load_estate` (twin.estate). Events: `Decoder`, `EventBlock` (twin.events). Stores: `open_store` (twin.store).
Recordings: twin.recordings. A recording through the twin: `replay` (twin.replay).
"""
