"""The streaming job, and what else meets Kafka: publishing, recording, subscribing.

| room | holds |
| --- | --- |
| `streams.query` | the Spark query: its stages (`decode_stage`, `processor`), its session, checks before its start |
| `streams.state` | the twins of a Python worker: cached, mirrored in files, kept as pages in Spark's state store |
| `streams.checkpoint` | the checkpoint: whose it is, whether it is sound, where it goes on |
| `streams.kafka` | topics, settings, rights; publishing, recording, subscribing |
| `streams.host` | the machine: descriptors and memory, scratch directories, Spark's Java process |

`streams.pure_producer` is a single file that collectors copy. The twin itself is in `twin`: nothing here changes what
it computes.
"""
