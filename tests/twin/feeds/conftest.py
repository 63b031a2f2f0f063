"""Estates for tests of feeds: `estate`, and `site` with SCM."""

from __future__ import annotations

import pytest

from twin.estate import load_estate

ESTATE = """
schema = 1
[queue_sharing_group.QSG1]
queue_managers = ["QM01", "QM02"]
[queue_manager.QM01]
[queue_manager.QMD1]
platform = "distributed"
[structure."QSG1/APP1"]
size = "1G"
offload = "SMDS"
cf_level = 5
[queue."QSG1/ORDERS"]
structure = "APP1"
[page_set."QM01/4"]
pages = 20000
buffer_pool = 3
[storage_class."QM01/DEFAULT"]
page_set = 4
[queue."QM01/LOCAL"]
storage_class = "DEFAULT"
[queue_file."QMD1/INVOICES"]
[queue_file."QMD1/ORDERS"]
"""


@pytest.fixture
def estate(tmp_path):
    path = tmp_path / "estate.toml"
    path.write_text(ESTATE, encoding="utf-8")
    return load_estate(path)


TEXT = """schema = 1
[coupling_facility.CF01]
size = "64G"
scm = "16G"
[queue_sharing_group.QSG1]
queue_managers = ["QM01", "QM02"]
[queue_manager.QM01]
[queue_manager.QM02]
[queue_manager.QMD1]
platform = "distributed"
[structure."QSG1/APP1"]
size = "4G"
cf_level = 5
coupling_facility = "CF01"
scm_max_size = "8G"
[queue."QSG1/ORDERS"]
structure = "APP1"
[page_set."QM01/4"]
pages = 20000
[queue_file."QMD1/INVOICES"]
max_size = "2T"
"""


@pytest.fixture(scope="session")
def site(tmp_path_factory):
    path = tmp_path_factory.mktemp("site") / "estate.toml"
    path.write_text(TEXT)
    return load_estate(path)
