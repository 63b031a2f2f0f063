"""Compiled kernels: the storage mechanisms of IBM MQ as plain loops over numpy arrays.

They know nothing of estates, Kafka or Spark. Each file has one mechanism. `layout` defines the arrays, `_compile` how
kernels are compiled.
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

__distribution__ = "mqtwin"  # read by twin/base/installed.py, before it is imported
