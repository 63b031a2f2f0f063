"""An estate with two members of a group, SCM, page sets and a queue file."""

from __future__ import annotations

import pytest

from twin.estate import load_estate

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
