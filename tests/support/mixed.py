"""An estate with a store of every kind, and a recording in which each of them fills."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa

from twin.estate import Estate, load_estate
from twin.recordings.files import RecordingWriter
from twin.simulation import make_scenario, simulate

MEMBERS = ("UC01QM01", "UC01QM02", "UC01QM03")
_ESTATE = """\
schema = 1

[coupling_facility.CF01]
size = "160M"
scm = "24M"

[queue_sharing_group.QSG1]
queue_managers = ["QM01", "QM02"]

[structure."QSG1/APP1"]
coupling_facility = "CF01"
size = "24M"
scm_max_size = "16M"
cf_level = 5
ds_block = "64K"
offld1_sz = "64K"
offld2_sz = "64K"
offld3_sz = "64K"

[structure."QSG1/APP2"]
coupling_facility = "CF01"
size = "16M"
init_size = "12M"
allow_auto_alter = true
scm_max_size = "16M"
cf_level = 5
ds_block = "64K"

[smds."QSG1/APP1/QM01"]
size = "8M"
max_size = "8M"

[smds."QSG1/APP1/QM02"]
size = "8M"
max_size = "8M"

[smds."QSG1/APP2/QM01"]
size = "8M"
max_size = "8M"

[smds."QSG1/APP2/QM02"]
size = "8M"
max_size = "8M"

[queue."QSG1/ORDERS"]
structure = "APP1"

[queue."QSG1/PAYMENTS"]
structure = "APP1"

[queue."QSG1/AUDIT"]
structure = "APP2"

[queue_manager.QM01]
platform = "zos"
version = "9.4"

[page_set."QM01/4"]
pages = 8000
expand = "NONE"
buffer_pool = 3

[storage_class."QM01/REMOTE"]
page_set = 4

[queue."QM01/LOCAL.REPLIES"]
storage_class = "REMOTE"

[queue."QM01/LOCAL.ORDERS"]
storage_class = "REMOTE"

[queue_manager.QMD1]
platform = "distributed"

[queue_file."QMD1/INVOICES"]
max_size = "32M"

[uniform_cluster.UC01]
queue_managers = ["UC01QM01", "UC01QM02", "UC01QM03"]
messages_per_second = 21.07
""" + "".join(
    f'\n[queue_manager.{name}]\nplatform = "distributed"\n\n[queue_file."{name}/REQUEST"]\n' for name in MEMBERS
)
_STORIES = {  # scenario -> the store it is about, and those whose events are taken
    "scm-fills-behind": ("QSG1/APP1", ("QSG1/APP1", "QSG1/APP2")),
    "page-set-expand-none": ("QM01/PS04", ("QM01/PS04",)),
    "queue-file-growth": ("QMD1/INVOICES", ("QMD1/INVOICES",)),
    "uniform-cluster-ramp": ("UC01", tuple(f"{name}/REQUEST" for name in MEMBERS)),
}


def mixed_estate(folder: Path) -> Path:
    """Two structures on a coupling facility whose SCM is over-committed, a page set, a queue file, a cluster."""
    path = folder / "mixed-estate.toml"
    path.write_text(_ESTATE, encoding="utf-8")
    return path


def mixed_recording(folder: Path, estate: Estate, seed: int = 3) -> Path:
    """Four stories at the same time, each about another kind of store, in the order of time."""
    tables = []
    for name, (store, names) in _STORIES.items():
        part = folder / f"{name}.arrow"
        simulate(make_scenario(name, store=store), estate, part, seed)
        with pa.ipc.open_file(part) as reader:
            table = reader.read_all()
        tables.append(table.filter(pa.array(_belongs(table, estate, names))))
    whole = pa.concat_tables([table.cast(pa.schema(_plain(table.schema))) for table in tables])
    times = whole.column("time").cast(pa.int64()).to_numpy()
    path = folder / "mixed.ndjson.zst"
    with RecordingWriter(path) as writer:
        writer.write(whole.take(pa.array(np.argsort(times, kind="stable"))))
    return path


def mixed(folder: Path) -> tuple[Path, Estate]:
    """Return the recording and its estate."""
    estate = load_estate(mixed_estate(folder))
    return mixed_recording(folder, estate), estate


def _belongs(table: pa.Table, estate: Estate, names: tuple[str, ...]) -> list[bool]:
    """Return True for each event of one of the stores; a heartbeat without a queue counts by its queue manager."""
    qmgrs, queues = table.column("qmgr").to_pylist(), table.column("queue").to_pylist()
    of_queue = {key: estate.routes[route].store in names for key, route in estate.queue_routes.items()}
    known = {qmgr for store in names for qmgr in estate.stores[store].queue_managers}
    return [
        qmgr in known if queue is None else of_queue[qmgr, queue] for qmgr, queue in zip(qmgrs, queues, strict=True)
    ]


def _plain(schema: pa.Schema) -> list[pa.Field]:
    """Return the columns without dictionaries, so that tables of several recordings can be joined."""
    plain = {field.name: field.type.value_type for field in schema if pa.types.is_dictionary(field.type)}
    return [pa.field(field.name, plain.get(field.name, field.type)) for field in schema]
