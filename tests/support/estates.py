"""Estates as files, for tests that start from what a user would write."""

from __future__ import annotations

from pathlib import Path

_TRACE = """\
schema = 1
[queue_sharing_group]
QSG1 = {queue_managers = ["QM01", "QM02"]}
[structure]
"QSG1/LLM" = {size = "SIZE", cf_level = 5, offload = "SMDS"}
[smds]
"QSG1/LLM/QM01" = {size = "16M", secondary = "8M", max_size = "32M"}
"QSG1/LLM/QM02" = {size = "16M", secondary = "8M", max_size = "32M"}
[queue]
"QSG1/ORDERS" = {structure = "LLM"}
"""
TRACE_SERVICE_RATE = 1200.0
"""Tokens a second with which bursts of the real trace cross all offload rules of `trace_estate` and end in 2192."""

_SMALL = """\
schema = 1
[queue_sharing_group]
QSG1 = {queue_managers = ["QM01", "QM02", "QM03"]}
[structure]
"QSG1/APP1" = {size = "SIZE", cf_level = 5, ds_block = "64K"}
"QSG1/APP2" = {size = "8M", cf_level = 5, ds_block = "64K"}
[smds]
"QSG1/APP1/QM01" = {size = "SMDS", max_size = "SMDS"}
"QSG1/APP1/QM02" = {size = "SMDS", max_size = "SMDS"}
"QSG1/APP1/QM03" = {size = "SMDS", max_size = "SMDS"}
"QSG1/APP2/QM01" = {size = "8M", max_size = "8M"}
"QSG1/APP2/QM02" = {size = "8M", max_size = "8M"}
"QSG1/APP2/QM03" = {size = "8M", max_size = "8M"}
[queue]
"QSG1/ORDERS" = {structure = "APP1"}
"QSG1/PAYMENTS" = {structure = "APP1"}
"QSG1/AUDIT" = {structure = "APP2"}
"""

_FACILITY = """\
schema = 1
[coupling_facility]
CF01 = {size = "64G"}
[queue_sharing_group]
QSG1 = {queue_managers = ["QM01"]}
[queue_manager]
QM01 = {}
[structure]
"QSG1/APP1" = {size = "SIZE", cf_level = 5, coupling_facility = "CF01"}
[queue]
"QSG1/ORDERS" = {structure = "APP1"}
"QSG1/REPLIES" = {structure = "APP1"}
"""


def trace_estate(folder: Path, size: str = "1500K") -> Path:
    """Return the estate of the real request trace: a structure small enough for its bursts."""
    return _write(folder / "trace-estate.toml", _TRACE, SIZE=size)


def small_estate(folder: Path, size: str = "48M", smds: str = "16M") -> Path:
    """Write a group of three queue managers whose structure QSG1/APP1 some thousand messages fill."""
    return _write(folder / "small-estate.toml", _SMALL, SIZE=size, SMDS=smds)


def facility_estate(folder: Path, size: str = "10M") -> Path:
    """Write a structure of two queues, and the coupling facility that it is in."""
    return _write(folder / "facility-estate.toml", _FACILITY, SIZE=size)


def _write(path: Path, text: str, **values: str) -> Path:
    """Write a text with values in place of names in quotes."""
    for name, value in values.items():
        text = text.replace(f'"{name}"', f'"{value}"')
    path.write_text(text, encoding="utf-8")
    return path
