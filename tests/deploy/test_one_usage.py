"""One resource has one usage: console, exporter, the table of `mqtwin replay` and alerts agree at each moment."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from deploy.console.model import ConsoleModel
from deploy.metrics.catalogue import resource_labels
from deploy.metrics.collector import TwinCollector
from deploy.show.summaries import HEADINGS, usage_lines, usage_notes
from tests.naive.estates import data_set
from tests.support.console_feed import TOPICS, page_set, state_record
from tests.support.shared import FILES, Shared, file_report, shared_estate, structure_report
from tests.support.surfaces import latest_of
from tests.support.twin_driver import PageSetDriver, QueueFileDriver, TwinDriver
from twin.alerts.episodes import Alert
from twin.records import StateRecord, read_state_record

Moment = tuple[StateRecord | dict[str, Any], Alert]  # a state record, and an alert of the same event


def record_of(state: StateRecord | dict[str, Any]) -> StateRecord:
    return read_state_record(msgspec.json.encode(state))


def console_pcts(state: StateRecord | dict[str, Any]) -> dict[str, float]:
    model = ConsoleModel(TOPICS)
    model.fold([state_record(state)])
    (store,) = msgspec.json.decode(model.changes(0)[1])["stores"]
    return {resource["name"]: resource["pct"] for resource in store["resources"]}


def exported_pct(state: StateRecord | dict[str, Any], resource: str) -> float:
    families = {
        family.name: family
        for family in TwinCollector(latest_of([state]), threading.Lock(), lambda: None, lambda: True).collect()
    }
    labels = resource_labels(resource)
    (value,) = [
        sample.value
        for sample in families["mqtwin_usage_ratio"].samples
        if all(sample.labels[name] == text for name, text in labels.items())
    ]
    return 100.0 * value


def assert_agree(moments: Iterable[Moment], resources: set[str]) -> None:
    """Assert that all surfaces show the usage of each alert's resource, and that the resources are among them."""
    seen = set()
    for state, alert in moments:
        seen.add(alert.resource)
        pct = console_pcts(state)[alert.resource]
        assert pct == pytest.approx(alert.usage_pct, abs=1e-9), alert
        assert exported_pct(state, alert.resource) == pytest.approx(pct, abs=1e-9), alert
        (line,) = usage_lines([record_of(state)])
        row = dict(zip(HEADINGS, line, strict=True))
        present = row["usage"].partition(" (the system took more")[0]
        assert present in {f"{usage:.1f} %" for usage in console_pcts(state).values()}, alert
        if len(console_pcts(state)) == 1:
            assert present == f"{pct:.1f} %", alert
    assert resources <= seen


def moments_of(driver: TwinDriver, lengths: Iterable[int], **fields: Any) -> list[Moment]:
    """Put messages one by one; return the moments at which alerts opened: updates are of the tick before a put."""
    moments = []
    for length in lengths:
        before = len(driver.alerts)
        state = driver.put(length, **fields)
        opened = [alert for alert in driver.alerts[before:] if alert.change == "opened"]
        moments += [(state, alert) for alert in opened if alert.condition != "full-forecast"]
    return moments


def test_entries_elements_and_data_sets_of_a_structure_agree() -> None:
    moments = moments_of(TwinDriver(), [100] * 41)  # 40 entries, 240 elements
    moments += moments_of(TwinDriver(), [3_000] * 25)
    small = {"QM01": data_set(size=10 * 8_192)}
    driver = TwinDriver(
        size=1 << 22, ds_block=8_192, offld1_th=0, offld1_sz=0, smds=small, queue_managers=("QM01",), ds_expand=False
    )
    moments += moments_of(driver, [8_000] * 10)
    assert_agree(moments, {"entries", "elements", "smds/QM01"})


def test_pages_agree() -> None:
    assert_agree(moments_of(PageSetDriver(), [4_000] * 99), {"pages"})


def test_pages_that_expand_agree_of_the_present_size() -> None:
    driver = PageSetDriver(expand="USER", secondary_pages=50, max_pages=200)
    assert_agree(moments_of(driver, [4_000] * 200), {"pages"})


def test_the_file_of_a_queue_agrees() -> None:
    driver = QueueFileDriver(max_size=200 * 512)
    assert_agree(moments_of(driver, [2_000] * 60), {"file"})


def test_storage_class_memory_and_storage_of_a_coupling_facility_agree(tmp_path: Path) -> None:
    facility = Shared(shared_estate(tmp_path), "CF01")
    free = facility.state().storage_free
    gib = 1 << 30
    for tick, values in ((1, {"scm_used": 2 * gib}), (2, {"aug_dynamic": free // 2 + 1})):
        sources = ("QSG1/APP1", "QSG1/APP2")
        facility.reports(*(structure_report(source, tick, **values) for source in sources))
    moments = [(facility.state(), alert) for alert in facility.alerts[-1:]]
    assert_agree(moments, {"augmented"})


def test_capacity_of_a_uniform_cluster_agrees_though_messages_wait(tmp_path: Path) -> None:
    cluster = Shared(shared_estate(tmp_path), "UC01")
    for tick in range(1, 20):
        depth = 0 if tick < 10 else 360_000  # 400 messages/s for a quarter of an hour
        cluster.reports(file_report(FILES[0], tick, puts=6_000, gets=6_000, depth=depth))
        cluster.reports(*(file_report(file, tick) for file in FILES[1:]))
        if cluster.alerts:
            break
    (alert,) = cluster.alerts
    state = cluster.state()
    assert state.load > state.rate
    assert_agree([(state, alert)], {"capacity"})


def test_a_full_data_set_is_in_the_table() -> None:
    small = {"QM01": data_set(size=10 * 8_192)}
    driver = TwinDriver(
        size=1 << 22, ds_block=8_192, offld1_th=0, offld1_sz=0, smds=small, queue_managers=("QM01",), ds_expand=False
    )
    for _ in range(9):
        state = driver.put(8_000)
    (line,) = usage_lines([record_of(state)])
    assert dict(zip(HEADINGS, line, strict=True))["unit"] == "blocks of SMDS QM01"
    assert dict(zip(HEADINGS, line, strict=True))["usage"] == "100.0 %"


def test_the_table_says_what_an_expanding_resource_can_become() -> None:
    state = PageSetDriver(expand="USER", secondary_pages=50, max_pages=200).put(4_000)
    (line,) = usage_lines([record_of(state)])
    assert line[5].startswith("pages, up to ")
    assert re.fullmatch(r"[0-9.]+ %", line[6])


def test_the_table_says_not_measured_and_leaves_out_logs() -> None:
    driver = PageSetDriver()
    (line,) = usage_lines([record_of(driver.wait(1))])
    row = dict(zip(HEADINGS, line, strict=True))
    assert (row["messages"], row["used"], row["usage"]) == ("not measured", "", "not measured")
    state = driver.measure(pages_used=20, pages_total=500)
    (line,) = usage_lines([record_of(state)])
    assert (line[2], line[3]) == ("not measured", "20")
    assert usage_notes([record_of(state)]) == [
        "QM01/PS04: time to full not known yet, 1 of 5 levels",
        "QM01/PS04: an estimated 20 more messages, one a page or block, as only these were measured",
    ]
    counts = dict.fromkeys(("log_records", "checkpoints", "truncations", "file_bytes", "late_reports"), 0)
    log = record_of(page_set("QMD1", 0) | counts | {"kind": "queue_manager", "records_to_replay": 7, "files": []})
    assert usage_lines([log]) == []
    assert usage_notes([log]) == ["QMD1: 7 log records since its last checkpoint"]


def test_the_exporter_has_no_sample_of_what_was_not_measured() -> None:
    state = TwinDriver().measure(smds={"QM01": {"blocks_used": 5}})
    collector = TwinCollector(latest_of([state]), threading.Lock(), lambda: None, lambda: True)
    families = {family.name: family for family in collector.collect()}
    resources = [sample.labels["resource"] for sample in families["mqtwin_usage_ratio"].samples]
    assert resources == ["smds/QM01"]
    assert not {"mqtwin_entries_used", "mqtwin_elements_used", "mqtwin_store_messages"} & families.keys()
    assert json.dumps(state, allow_nan=False)
