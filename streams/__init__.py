"""The streaming job and the other programs that use Kafka: publishing, recording, subscribing.

| package | contents |
| --- | --- |
| `streams.query` | the Spark query: its stages (`decode_stage`, `processor`), its session, checks before its start |
| `streams.state` | the twins of a Python worker: cached, mirrored in files, stored as pages in Spark's state store |
| `streams.checkpoint` | the checkpoint: its owner, its integrity, the offsets to resume from |
| `streams.kafka` | topics, settings, rights; publishing, recording, subscribing |
| `streams.host` | the machine: descriptors, memory, scratch directories, memory mappings, Spark's Java process |
| `streams.plan`, `streams.log`, `streams.errors` | the plan sent to workers; logging; causes of failures on one line |

`streams.pure_producer` is a single file that collectors copy. The twin itself is in `twin`; nothing here changes what
it computes. Imports run from top to bottom of the table; a contract in pyproject.toml checks it.
"""

__distribution__ = "mqtwin"  # read by twin/base/installed.py
