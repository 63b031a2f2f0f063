"""Compiled kernels: the storage mechanisms of IBM MQ as plain loops over numpy arrays.

They know nothing of estates, Kafka or Spark. One file a mechanism; `layout` names the arrays, `_compile` owns how
everything is compiled.
"""

from kernels.layout import (
    EVENT,
    FLAG_DIRECT,
    FLAG_HAS_MSGID,
    FLAG_HAS_UOW,
    FLAG_PERSISTENT,
    OPS,
    Store,
)

__all__ = ["EVENT", "FLAG_DIRECT", "FLAG_HAS_MSGID", "FLAG_HAS_UOW", "FLAG_PERSISTENT", "OPS", "Store"]
