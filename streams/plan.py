"""What the Python workers are given: estate, topics, limits. Sent as bytes with each task, opened once per process."""

from __future__ import annotations

import hashlib
import pickle
import zlib
from dataclasses import dataclass, field
from functools import lru_cache

from streams.kafka.topics import Limits, Topics
from twin.estate import Estate


@dataclass(frozen=True, slots=True)
class Loss:
    """For tests: how often the caches are lost between batches, decided from `seed`, store and batch."""

    probability: float = 0.0
    seed: int = 0

    @classmethod
    def parse(cls, text: str) -> Loss:
        """``0.3,7``: probability, seed."""
        probability, _, seed = text.partition(",")
        return cls(float(probability), int(seed or 0))


@dataclass(frozen=True, slots=True)
class Plan:
    """See the module. `digest` names the estate: arrays made for one are not used for another."""

    estate: Estate
    topics: Topics
    limits: Limits
    loss: Loss = field(default_factory=Loss)


@dataclass(frozen=True, slots=True)
class PackedPlan:
    """A plan as it travels: compressed bytes, and a digest of them."""

    data: bytes
    digest: str

    @classmethod
    def of(cls, plan: Plan) -> PackedPlan:
        """Pack a plan."""
        data = zlib.compress(pickle.dumps(plan, protocol=pickle.HIGHEST_PROTOCOL))
        return cls(data, hashlib.sha256(data).hexdigest())

    def open(self) -> Plan:
        """The plan; the same object at every call in a process."""
        return _open(self)


@lru_cache(maxsize=4)
def _open(packed: PackedPlan) -> Plan:
    plan: Plan = pickle.loads(zlib.decompress(packed.data))  # noqa: S301 -- made by the driver of this job
    return plan
