"""Options that the commands of `mqtwin size` share."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, TypeVar

from cyclopts import Parameter

from deploy.show.warnings import warned
from twin.errors import UsageError
from twin.estate import CouplingFacility, Estate, PageSet, Structure, load_estate, parse_size
from twin.sizing import bare_structure

Kind = TypeVar("Kind", Structure, PageSet)


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Planned:
    """Of which store of which estate, and how it is told."""

    estate: Annotated[Path | None, Parameter(help="An estate: sizes, ratios and versions come from its store.")] = None
    store: Annotated[str | None, Parameter(help="The store, as QSG1/APP1 or QM01/PS04.")] = None
    json: Annotated[bool, Parameter(help="One JSON object instead of a table.", negative="")] = False

    def described(self, kind: type[Kind]) -> tuple[Estate, Kind] | None:
        """The store as the estate describes it, None where no estate is given. UsageError."""
        if self.estate is None:
            if self.store is not None:
                raise UsageError(f"--store {self.store}: give --estate, too")
            return None
        estate = load_estate(self.estate)
        known = [name for name, store in estate.stores.items() if isinstance(store, kind)]
        found = estate.stores.get(self.store or "")
        if not isinstance(found, kind):
            what = kind.kind.replace("_", " ")
            right = f"{', '.join(known)} would be right" if known else f"the estate has no {what}"
            raise UsageError(f"--store {self.store or 'is missing'}: no {what} of {self.estate}; {right}")
        return warned(estate), found

    def structure(self, size: str | None, *, needed: bool) -> tuple[Estate | None, Structure, int | None]:
        """The structure it is about, and the bytes of --size or else of the estate. UsageError.

        needed: a size has to come from one of the two.
        """
        given = None if size is None else size_of("--size", size)
        found = self.described(Structure)
        if found is None:
            if given is None and needed:
                raise UsageError("--size: the structure's SIZE is right, as 4G; or --estate and --store")
            return None, bare_structure(given or 0), given
        estate, config = found
        if given is None:
            return estate, config, config.init_size or config.size
        return estate, replace(config, size=given, init_size=None), given


def size_of(option: str, text: str) -> int:
    """Bytes that an option says, more than 0. UsageError."""
    try:
        size = parse_size(text)
    except ValueError:
        size = 0
    if not size:
        raise UsageError(f"{option} {text}: a size is right: bytes, or a number with K, M, G or T, as 4G")
    return size


def scm_of(estate: Estate | None, config: Structure) -> tuple[int | None, int]:
    """SCM of the structure's coupling facility, None: not known; SCMMAXSIZE of its other structures."""
    facility = estate.stores.get(config.coupling_facility or "") if estate is not None else None
    if estate is None or not isinstance(facility, CouplingFacility):
        return None, 0
    others = [estate.stores[name] for name in facility.structures if name != config.name]
    committed = sum(other.scm_max_size or 0 for other in others if isinstance(other, Structure))
    return (facility.scm or 0) if facility.size is not None else None, committed
