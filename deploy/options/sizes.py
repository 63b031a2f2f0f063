"""Options that the commands of `mqtwin size` share."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeVar

from cyclopts import Parameter

from deploy.options.common import Flag
from deploy.options.files import EstateFile
from deploy.show.terminal import command_line, print_warnings
from twin.errors import UsageError
from twin.estate import Estate, PageSet, QueueFile, Structure, load_estate, parse_size
from twin.estate.model import facility_of, others_of
from twin.sizing import Mix, at_max_depth, bare_structure
from twin.units import as_count

Kind = TypeVar("Kind", Structure, PageSet, QueueFile)


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class SizeOptions:
    """The store of a plan, and the format of the output.

    Args:
        estate: Estate file (TOML): sizes, ratios, versions of a store.
        store: Store in the estate, such as QSG1/APP1 or QM01/PS04.
        json: Print JSON instead of text.
    """

    estate: EstateFile | None = None
    store: str | None = None
    json: Flag = False

    def load_store(self, kind: type[Kind], *, holds_queues: bool = True) -> tuple[Estate, Kind] | None:
        """Return the estate and its store of that kind; None without --estate. An administration structure holds no
        queues. UsageError: --estate or --store is missing, or the estate has no such store.
        """
        if self.estate is None:
            if self.store is not None:
                raise UsageError(f"--store {self.store} without --estate; expected: --estate, too")
            return None
        estate = load_estate(self.estate)
        fitting = {
            name: store
            for name, store in estate.stores.items()
            if isinstance(store, kind) and not (holds_queues and store.known_by_levels)
        }
        config = estate.stores.get(self.store or "")
        if isinstance(config, kind) and config.name not in fitting:
            raise UsageError(f"--store {config.name}: it holds no queues; expected: mqtwin size structure --admin")
        if not isinstance(config, kind):
            noun = kind.kind.replace("_", " ")
            expected = ", ".join(fitting) or f"an estate with a {noun}"
            raise UsageError(f"--store {self.store or 'is missing'}: no {noun} of {self.estate}; expected: {expected}")
        if estate.warnings:
            count = as_count(len(estate.warnings), "warning")
            command = command_line(["mqtwin", "estate", "check", str(self.estate)])
            print_warnings([f"{self.estate}: {count}, see {command}"])
        return estate, config

    def load_structure(self, size: str | None, *, needs_size: bool) -> tuple[Estate | None, Structure, int | None]:
        """Return the estate, the structure, and its size in bytes; None for what is unknown. UsageError: See
        `load_store`, or a required size is missing.
        """
        size_bytes = None if size is None else parse_size_option("--size", size)
        loaded = self.load_store(Structure)
        if loaded is None:
            if size_bytes is None and needs_size:
                raise UsageError("--size is missing; expected: a size such as 4G, or --estate and --store")
            return None, bare_structure(size_bytes or 0), size_bytes
        estate, config = loaded
        if size_bytes is None:
            return estate, config, config.init_size or config.size
        return estate, replace(config, size=size_bytes, init_size=None), size_bytes


def worst_case(estate: Estate | None, store: str, texts: tuple[str, ...]) -> tuple[Mix, list[str]]:
    """Return the messages of a store with each queue at its MAXDEPTH, and warnings; nothing without `texts`.
    UsageError: See `twin.sizing.at_max_depth`, or the estate is missing.
    """
    if not texts:
        return (), []
    if estate is None:
        raise UsageError(f"--at-max-depth {texts[0]}: give --estate and --store, whose queues have a max_depth")
    return at_max_depth(estate.stores[store].queues, estate.max_depths.get(store, {}), texts)


def parse_size_option(option: str, text: str) -> int:
    """Return the value of an option in bytes. UsageError: `text` is not a size above 0."""
    try:
        size_bytes = parse_size(text)
    except ValueError:
        size_bytes = 0
    if not size_bytes:
        raise UsageError(f"{option} {text}; expected: bytes, or a number with K, M, G or T, such as 4G")
    return size_bytes


def scm_of_facility(estate: Estate | None, config: Structure) -> tuple[int | None, int]:
    """Return the SCM of a structure's coupling facility, and the total SCMMAXSIZE of its other structures, in bytes.

    The first is None if it is unknown.
    """
    facility = None if estate is None else facility_of(estate.stores, config)
    if estate is None or facility is None:
        return None, 0
    committed = sum(other.scm_max_size or 0 for other in others_of(estate.stores, config, facility))
    return (facility.scm or 0) if facility.size is not None else None, committed
