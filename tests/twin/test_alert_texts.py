"""Texts of alerts and plans that a person reads or pastes: numbers, commands, the CFRM policy."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from deploy.console.model import commands_in
from kernels import event_loop
from tests.naive.estates import structure
from tests.support import runbooks, seen
from tests.support.twin_driver import PageSetDriver, QueueFileDriver, TwinDriver
from twin import capacity
from twin.alerts import texts
from twin.base.conditions import (
    AUGMENTED,
    ELEMENTS,
    ENTRIES,
    FILE,
    PAGES,
    SCM,
    Condition,
    Pool,
    Resource,
    full_reason,
    full_reasons,
)
from twin.base.units import GIB, as_rate, as_times, as_usage, readable_size
from twin.estate import Structure, load_estate
from twin.forecast import flows
from twin.forecast.outlook import look_ahead
from twin.forecast.remedies import effects
from twin.records import GETTERS, Action, Filler
from twin.testing import Driver

FILLERS = (Filler("ORDERS", 0.8), Filler("AUDIT", 0.2))
FULL = """
schema = 1
[queue_sharing_group.QSG1]
queue_managers = ["QM01"]
[structure."QSG1/APP1"]
size = "4M"
offload = "NONE"
cf_level = 4
[queue."QSG1/A.QUEUE"]
structure = "APP1"
"""


def actions() -> Iterator[Action]:
    """Yield the actions of every kind of store, in every state that has its own."""
    config = replace(structure(), size=4 * GIB, scm_max_size=GIB, ds_expand=False)
    for policy in (None, "PROD01"):
        config = replace(config, cfrm_policy=policy)
        for resource in (ENTRIES, ELEMENTS):
            for size in (GIB, 4 * GIB):
                for auto in (False, True):
                    changed = replace(config, allow_auto_alter=auto)
                    yield from runbooks.pool_actions(changed, resource, size, FILLERS, alterable=True)
            yield from runbooks.pool_actions(config, resource, 4 * GIB, FILLERS, alterable=False)
        yield from runbooks.scm_actions(config, SCM, FILLERS)
        yield from runbooks.scm_actions(config, AUGMENTED, FILLERS)
        yield from runbooks.alter_actions(config, FILLERS)
        for total in (GIB, 2 * GIB):
            maxima = {config.name: 2 * GIB, "QSG1/APP2": GIB}
            yield from runbooks.facility_actions(Condition.SCM_OVERCOMMITTED, maxima, policy, total)
        for usage in ({}, {config.name: GIB}):
            yield from runbooks.facility_actions(Condition.SCM_EXHAUSTED, usage)
            yield from runbooks.facility_actions(Condition.AUGMENTED_EXHAUSTED, usage, policy)
    for has_failed in (False, True):
        yield from runbooks.dataset_actions(config, "QM01", FILLERS, has_failed=has_failed)
    yield from runbooks.more_members_actions("UC01", [("UC01QM02", None), ("UC01QM03", "HOST2")], [None], 1)
    yield from runbooks.more_members_actions("UC01", [], ["HOST1"], 0)
    yield from runbooks.fewer_members_actions("UC01QM02")
    for expand in ("NONE", "USER", "SYSTEM"):
        yield from PageSetDriver(expand=expand).twin.view(PAGES).actions(Condition.FULL, FILLERS)
    yield from QueueFileDriver(max_size=GIB).twin.view(FILE).actions(Condition.FULL, FILLERS)
    yield from QueueFileDriver(max_size=GIB, file_system_size=2 * GIB).twin.view(FILE).actions(Condition.FULL, FILLERS)
    yield from QueueFileDriver(max_size=GIB, file_system_size=GIB).twin.view(FILE).actions(Condition.FULL, FILLERS)
    for limit in (0, 10):
        yield from runbooks.depth_actions("ORDERS", limit, is_shared=True)


def test_no_statement_of_a_runbook_has_a_placeholder() -> None:
    every = list(actions())
    statements = {step.statement for action in every for step in action.steps if step.statement is not None}
    assert len(statements) > 20
    assert sorted(filter(seen.has_gap, statements)) == []
    assert {
        "ALTER QLOCAL(A.QUEUE) MAXFSIZE(2048)",
        "ALTER PSID(4) EXPAND(SYSTEM)",
        "STRUCTURE NAME(QSG1APP1) SIZE(8G)",
        "SETXCF START,POLICY,TYPE=CFRM,POLNAME=PROD01",
        "ALTER SMDS(QM01) CFSTRUCT(APP1) DSEXPAND(YES)",
    } <= statements
    for action in every:
        assert seen.offences([action.sentence, *action.lines]) == []
        assert re.fullmatch("[a-z]+(-[a-z]+)*", action.id)


def test_a_statement_in_a_sentence_is_that_of_the_runbook() -> None:
    for action in actions():
        typed = {step.statement for step in action.steps}
        mqsc = {text for text in typed if text and re.match("ALTER|DISPLAY|RESET|SETXCF|D ", text)}
        assert mqsc <= set(commands_in(action.sentence)), action.sentence


def test_what_changes_a_size_says_the_way_back() -> None:
    config = replace(structure(), size=4 * GIB, cfrm_policy="PROD01")
    [alter] = runbooks.pool_actions(config, ENTRIES, GIB, (), {"alter-size": "then full in 2 h"}, alterable=True)
    assert (alter.id, alter.effect) == ("alter-size", "then full in 2 h")
    assert alter.undo == "SETXCF START,ALTER,STRNAME=QSG1APP1,SIZE=1G"
    assert alter.precondition == "CF01 has 3 GB of free storage: D CF,CFNAME=CF01"
    [policy] = runbooks.pool_actions(config, ENTRIES, 4 * GIB, (), alterable=True)
    assert policy.id == "cfrm-size"
    assert policy.undo == "the same steps with STRUCTURE NAME(QSG1APP1) SIZE(4G)"
    *_, copied = runbooks.dataset_actions(config, "QM01", ())
    assert copied.risk is not None and copied.risk.startswith("messages in QM01's data set cannot be got meanwhile")


def test_advice_on_a_size_that_was_never_seen_begins_with_a_look_at_the_policy() -> None:
    unseen = replace(structure(), size=200 << 20, init_size=None, cfrm_policy=None)
    [action] = runbooks.pool_actions(unseen, ENTRIES, 200 << 20, (), {"cfrm-size": "then full in 2 h"}, alterable=True)
    assert (action.id, action.effect) == ("cfrm-size", "then full in 2 h")
    assert "200M" in action.summary and "was not seen" in action.summary
    assert [step.statement for step in action.steps[:3]] == [
        "D XCF,STR,STRNAME=QSG1APP1",
        "SETXCF START,ALTER,STRNAME=QSG1APP1,SIZE=400M",
        "STRUCTURE NAME(QSG1APP1) SIZE(400M)",
    ]
    assert seen.offences([action.sentence, *action.lines]) == []
    [plan] = capacity.steps(unseen, {"size": 300 << 20})
    assert plan.index("D XCF,STR") < plan.index("SETXCF START,ALTER") < plan.index("IXCMIAPU")
    for known in (replace(unseen, cfrm_policy="PROD01"), replace(unseen, init_size=200 << 20)):
        [action] = runbooks.pool_actions(known, ENTRIES, 200 << 20, (), alterable=True)
        assert action.summary.startswith("Raise SIZE") and "SETXCF START,ALTER" not in action.sentence


@pytest.mark.parametrize("exponent", range(-4, 9))
def test_no_number_of_an_alert_has_an_exponent(exponent: int) -> None:
    for digits in (1.0, 1.3599, 9.9951, 9.9999):
        rate = digits * 10.0**exponent
        sentences = [texts.describe_rates(rate, rate, 5.0), texts.describe_rates(rate, 0.0, None)]
        sentences += [readable_size(int(rate * unit)) for unit in (1, 1 << 10, 1 << 20, 1 << 30)]
        assert not [sentence for sentence in sentences if re.search(r"[0-9]e[+-]", sentence)]


def test_usage_is_the_number_of_display_whatever_a_resource_can_grow_to() -> None:
    assert as_usage(89.04) == "89.0 % in use"
    assert [as_times(factor) for factor in (1.1, 1.96, 2.0, 4.02, 153.2)] == [
        *("1.1 times", "twice", "twice", "4 times", "153 times"),
    ]
    assert as_usage(104.2) == "104.2 % in use (the system took more than the twin has room for)"


def test_a_structure_that_z_os_enlarges_says_what_size_allows() -> None:
    driver = TwinDriver(size=1 << 22, init_size=1 << 21, allow_auto_alter=True)
    driver.put(100, count=100)
    view = driver.twin.view(ENTRIES)
    assert view.maximum_pct == pytest.approx(view.usage_pct / 2)
    assert (view.usage, view.growth) == (as_usage(view.usage_pct), "SIZE allows twice as much")
    driver.alter(size=1 << 22)
    driver.wait(10)
    assert driver.twin.view(ENTRIES).growth == ""


@pytest.mark.parametrize("growth", [{"allow_auto_alter": False}, {"allow_auto_alter": True, "full_threshold": 0}])
def test_what_nobody_enlarges_by_itself_is_no_room(growth: dict[str, Any]) -> None:
    driver = TwinDriver(size=1 << 22, init_size=1 << 21, **growth)
    driver.put(100, count=100)
    assert driver.twin.view(ENTRIES).maximum_pct == driver.twin.view(ENTRIES).usage_pct


def test_volumes_that_are_not_described_are_no_room() -> None:
    driver = PageSetDriver(expand="SYSTEM")
    state = driver.put(4_000, count=40)
    assert state["limits_unknown"] == ["pages"]
    assert driver.twin.view(PAGES).maximum_pct == state["usage_pct"]
    driver = TwinDriver()
    state = driver.put(60_000, count=70)
    assert state["limits_unknown"] == ["smds/QM01", "smds/QM02"]
    data_set = driver.twin.view(Resource(Pool.SMDS, "QM01"))
    assert data_set.maximum_pct == data_set.usage_pct


def test_the_code_of_a_full_store_is_that_of_its_platform() -> None:
    assert [full_reason(kind) for kind in ("structure", "page_set", "queue_file")] == [2192, 2192, 2056]
    assert (full_reasons(["queue_file"]), full_reasons(["queue_file", "structure"])) == ("2056", "2192 or 2056")
    assert FILE.reason == event_loop.MQRC_Q_SPACE_NOT_AVAILABLE
    assert PAGES.reason == event_loop.MQRC_STORAGE_MEDIUM_FULL
    assert Resource(Pool.QUEUE, "Q").reason == event_loop.MQRC_Q_FULL
    driver = QueueFileDriver(max_size=100 * 512)
    driver.put(1, count=8 + 100)
    driver.put(1, reason=event_loop.MQRC_Q_SPACE_NOT_AVAILABLE)
    texts_of = [text for alert in driver.alerts for text in (alert.cause, *alert.actions)]
    assert any("with 2056" in text for text in texts_of)
    assert seen.offences(texts_of, is_distributed=True) == []


def test_rates_have_three_digits() -> None:
    rates = (0.0, 0.0004, 0.00412, 4.2, 22.94, 99.949, 99.96, 1359.7, 1.2e6)
    assert [as_rate(rate) for rate in rates] == [
        *("0", "less than 0.001", "0.00412", "4.2", "22.9", "99.9", "100", "1,360", "1,200,000"),
    ]


def test_a_change_of_the_cfrm_policy_is_activated_before_the_rebuild_by_the_name_of_the_policy(tmp_path: Path) -> None:
    (tmp_path / "cfrm.txt").write_text(
        "DATA TYPE(CFRM)\nDEFINE POLICY NAME(PROD01) REPLACE(YES)\nSTRUCTURE NAME(QSG1APP1) SIZE(4M)\n"
    )
    toml = FULL.replace('size = "4M"\n', "").replace("schema = 1", 'schema = 1\n[[import]]\ncfrm = "cfrm.txt"')
    (tmp_path / "estate.toml").write_text(toml)
    config = load_estate(tmp_path / "estate.toml").stores["QSG1/APP1"]
    assert isinstance(config, Structure) and config.cfrm_policy == "PROD01"
    [action] = runbooks.pool_actions(config, ENTRIES, config.size, (), alterable=True)
    change, activate, rebuild = action.steps
    assert "policy PROD01" in change.text and "IXCMIAPU" in change.text
    assert change.statement == "STRUCTURE NAME(QSG1APP1) SIZE(8M)"
    assert activate.statement == "SETXCF START,POLICY,TYPE=CFRM,POLNAME=PROD01"
    assert rebuild.statement == "SETXCF START,REBUILD,STRNAME=QSG1APP1"
    [unnamed] = runbooks.pool_actions(replace(config, cfrm_policy=None), ENTRIES, config.size, (), alterable=True)
    assert [step.statement for step in unnamed.steps[2:]] == [  # behind a look at the policy that was not seen
        "STRUCTURE NAME(QSG1APP1) SIZE(8M)",
        "D XCF,POLICY,TYPE=CFRM",
        None,
        "SETXCF START,REBUILD,STRNAME=QSG1APP1",
    ]


def test_a_shared_queue_is_displayed_for_all_members_with_its_handles() -> None:
    [action] = runbooks.getter_actions(FILLERS, is_shared=True)
    assert [step.statement for step in action.steps] == [
        "DISPLAY QSTATUS(ORDERS) TYPE(QUEUE) CMDSCOPE(*) ALL",
        "DISPLAY QSTATUS(ORDERS) TYPE(HANDLE) CMDSCOPE(*) ALL",
        None,
    ]
    [private] = runbooks.getter_actions(FILLERS, is_shared=False)
    assert "CMDSCOPE" not in private.sentence


def test_of_a_queue_depth_the_members_are_asked_where_the_queue_is_shared() -> None:
    for driver, scope in ((TwinDriver(), True), (PageSetDriver(), False)):
        actions_of_queue = driver.twin.view(Resource(Pool.QUEUE, "A.QUEUE")).actions(Condition.QUEUE_FULL, ())
        assert ("CMDSCOPE(*)" in actions_of_queue[0].sentence) is scope


def test_of_a_full_store_it_is_said_how_many_gets_more_it_takes(tmp_path: Path) -> None:
    (tmp_path / "estate.toml").write_text(FULL)
    driver = Driver(tmp_path / "estate.toml")
    for _ in range(60):
        driver.put("A.QUEUE", length=1_000, count=50)
        driver.get("A.QUEUE", count=25)
        driver.wait(seconds=10)
    twin = driver._player.twins["QSG1/APP1"]
    assert twin.state().usage_pct < 100 or twin.state().overfull_puts > 0
    while twin.state().usage_pct < 100:
        driver.put("A.QUEUE", length=1_000, count=50)
        driver.get("A.QUEUE", count=25)
        driver.wait(seconds=10)
    store, tick = twin.tables.store, int(twin.tables.store.scalars[0]["tick"])
    fill = twin.fill_model(tick)
    now = flows.present(store, tick, fill.weights)
    assert now is not None
    outlook = look_ahead(store, twin.name, fill, now, tick, 720)
    assert np.median(outlook.full_at) == 0
    assert effects(outlook, (Filler("A.QUEUE", 1.0),), twin.config)[GETTERS] == (
        "needs 2.5 gets/s more; at the present rate it stays full"
    )
