"""The plan of a job: estate, topics, limits. It is sent as bytes with each task and unpacked once per process."""

from __future__ import annotations

import hashlib
import pickle
import zlib
from dataclasses import dataclass, field
from functools import lru_cache

from streams.kafka.topics import Limits, Topics
from twin.estate import Estate
from twin.feeds import FeedOptions


@dataclass(frozen=True, slots=True)
class Loss:
    """Random loss of caches between batches, for tests. The probability is per store and batch."""

    probability: float = 0.0
    seed: int = 0

    @classmethod
    def parse(cls, text: str) -> Loss:
        """Parse ``PROBABILITY,SEED``, as in ``0.3,7``; the seed may be missing."""
        probability, _, seed = text.partition(",")
        return cls(float(probability), int(seed or 0))


@dataclass(frozen=True, slots=True)
class Plan:
    """The input of every Python worker."""

    estate: Estate
    topics: Topics
    limits: Limits
    loss: Loss = field(default_factory=Loss)
    spans: FeedOptions = field(default_factory=FeedOptions)
    partitions: int = 1


@dataclass(frozen=True, slots=True)
class PackedPlan:
    """A plan as compressed bytes. digest: SHA-256, which names its estate: another one has arrays of its own."""

    data: bytes
    digest: str

    @classmethod
    def pack(cls, plan: Plan) -> PackedPlan:
        """Pack a plan."""
        data = zlib.compress(pickle.dumps(plan, protocol=pickle.HIGHEST_PROTOCOL))
        return cls(data, hashlib.sha256(data).hexdigest())

    def unpack(self) -> Plan:
        """Return the plan; the same object at every call in a process."""
        return _unpack(self)


@lru_cache(maxsize=4)
def _unpack(packed: PackedPlan) -> Plan:
    plan: Plan = pickle.loads(zlib.decompress(packed.data))  # noqa: S301 -- made by the driver of this job
    return plan
