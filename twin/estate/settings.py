"""Settings: attributes of a store by name, as a person would change them, and the store config that they make.

A setting is an attribute as in the estate, such as offld1_th = 60 or size = "8G"; `smds.QM01.size` is of a data set.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple, Self

from twin.errors import UsageError
from twin.estate.attributes import SMDS, parse_attributes
from twin.estate.errors import EstateError, known_hint
from twin.estate.model import CouplingFacility, Smds, StoreConfig, Structure
from twin.estate.routes import Estate
from twin.units import format_size

Setting = int | float | bool | str | None
"""Value of a setting: sizes are bytes or text such as "8G"."""
Settings = dict[str, Setting]
"""Settings of a store by name."""


class DataSetSetting(NamedTuple):
    """Name of an attribute of a data set; its text is `smds.QM01.size`."""

    qmgr: str
    attribute: str

    @classmethod
    def parse(cls, name: str) -> Self | None:
        """Return the name of a setting; None: it is not of a data set."""
        if not name.startswith("smds."):
            return None
        qmgr, _, attribute = name.removeprefix("smds.").rpartition(".")
        return cls(qmgr, attribute)

    def __str__(self) -> str:
        return f"smds.{self.qmgr}.{self.attribute}"


def changed_config(config: StoreConfig, settings: Mapping[str, Setting]) -> StoreConfig:
    """Return a store config with other settings. UsageError: a setting is unknown, or its value is wrong."""
    datasets = {name: value for name, value in settings.items() if DataSetSetting.parse(name)}
    own = {name: value for name, value in settings.items() if name not in datasets}
    try:
        changes = dict(parse_attributes(config, "REBUILD" if config.kind == "structure" else "ALTER", own))
    except EstateError as error:
        raise UsageError(str(error).partition(": ")[2] or str(error)) from None
    if datasets:
        changes["smds"] = _changed_datasets(config, datasets)
    return replace(config, **changes)


def check_scm(estate: Estate, config: StoreConfig, changed: StoreConfig) -> None:
    """Check that there is SCM where another SCMMAXSIZE is asked for. UsageError: the coupling facility has none."""
    if not isinstance(config, Structure) or not isinstance(changed, Structure):
        return
    facility = estate.stores.get(changed.coupling_facility or "")
    if not isinstance(facility, CouplingFacility) or facility.size is None or facility.scm:
        return  # without a described one, SCMMAXSIZE alone counts
    if changed.scm_max_size not in (None, config.scm_max_size):
        raise UsageError(
            f"scm_max_size = {format_size(changed.scm_max_size or 0)}: {facility.name} has no SCM; expected: scm in"
            f" [coupling_facility.{facility.name}] of the estate"
        )


def _changed_datasets(config: StoreConfig, settings: Mapping[str, Setting]) -> dict[str, Smds]:
    if not isinstance(config, Structure):
        raise UsageError(f"{next(iter(settings))}: a {config.kind} has no data sets; expected: an attribute of its own")
    datasets = dict(config.smds)
    for name, value in settings.items():
        setting = DataSetSetting.parse(name)
        assert setting is not None
        qmgr, attribute = setting
        if qmgr not in config.queue_managers:
            raise UsageError(f"{name}: no queue manager {qmgr}{known_hint(qmgr, config.queue_managers)}")
        if attribute not in SMDS:
            raise UsageError(f"{name}: no attribute {attribute} of a data set{known_hint(attribute, SMDS)}")
        try:
            datasets[qmgr] = replace(datasets.get(qmgr, Smds()), **{attribute: SMDS[attribute](value)})
        except (ValueError, TypeError) as error:
            raise UsageError(f"{name} = {value}: {error}") from None
    return datasets
