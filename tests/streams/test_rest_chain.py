"""Simulated queue managers, server, client, feed and twin: what the twin knows by rounds is held to the truth."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import pytest

from tests.mqweb import MqwebServer
from tests.support.rest_chain import ASKED, Chain, Twins, played
from twin.base.units import as_text
from twin.records.usage import resources_of

SECOND = 1_000_000
LOOK_S = 10  # between two looks at the truth
MIB = 1 << 20


@dataclass
class Case:
    """A story on a store, and the resource that it fills."""

    store: str
    resource: str
    length: float
    line: int = 80  # percentage from which `threshold` opens where it is measured
    early_s: float = LOOK_S  # that an alert may come before the truth
    shows_full: bool = True

    def usage(self, levels):
        """Return the percentage in use, by the levels of the store."""
        if self.resource == "entries":
            return 100 * levels["ents_used"] / levels["ents_max"]
        if self.resource == "elements":
            return 100 * levels["elems_used"] / levels["elems_max"]
        if self.resource == "pages":
            return 100 * (levels["pages_total"] - levels["pages_unused"]) / levels["pages_total"]
        if self.resource == "file":
            return 100 * levels["file_bytes"] / levels["file_max_bytes"]
        data_set = levels["smds"][self.resource.rpartition("/")[2]]
        return 100 * data_set["blocks_used"] / data_set["blocks_total"]


@dataclass
class Story:
    """A story as it was told: when the truth passed a line, and what alerts there were, seconds since the start."""

    full: float | None = None
    over: float | None = None  # the percentage of `threshold`
    by_rounds: dict[str, float] = field(default_factory=dict)  # first opened, by condition
    by_truth: dict[str, float] = field(default_factory=dict)
    paged: dict[str, float] = field(default_factory=dict)  # first page of the forecast: "rounds", "truth"
    rounds: int = 0


def simulated(folder, case, **settings):
    return played(folder, case.store, length=case.length, **settings)


def measures(system):
    """Return the MEASUREs of the truth."""
    qmgr = {"QSG1/APP1": "QM01", "QSG1/BIG": "QM01", "QM01/PS04": "QM01", "QMD1/INVOICES": "QMD1"}
    known = {"time": system.time, "op": "MEASURE"}
    return [
        {**known, "qmgr": name, "store": store, "measured": {**system.levels[store], "resync": True}}
        for store, name in qmgr.items()
    ]


def follow(folder, case, interval_s, **settings):
    """Play a story with rounds; beside it twins get the true levels at the same times."""
    system = simulated(folder, case, **settings)
    story, truth = Story(), Twins(system.estate)
    with MqwebServer(system) as server:
        chain = Chain(server, system, ASKED, answer_s=0.02)
        system.play(system.start)
        chain.round(has_definitions=True)
        for due in range(interval_s, (system.end - system.start) // SECOND, interval_s):
            for look in range(due - interval_s + LOOK_S, due + 1, LOOK_S):
                system.play(max(system.time, system.start + look * SECOND))
                if case.usage(system.levels[case.store]) >= case.line:
                    story.over = look if story.over is None else story.over
            _note(story, "rounds", story.by_rounds, chain.round(), case, system)
            _note(story, "truth", story.by_truth, truth.feed(measures(system)), case, system)
            story.rounds += 1
        assert set(server.most_at_once.values()) == {1}
        assert set(server.statuses) == {200}
    assert not chain.complaints
    assert not chain.intake.complaints
    full = system.outcomes[case.store].first_full
    story.full = None if full is None else (full - system.start) / SECOND
    return story


def _note(story, side, opened, alerts, case, system):
    for alert in alerts:
        if alert.store != case.store or alert.resource != case.resource:
            continue
        seconds = (alert.time - system.start) / SECOND
        if alert.change == "opened":
            opened.setdefault(alert.condition, seconds)
        if alert.condition == "full-forecast" and alert.level == "page":
            story.paged.setdefault(side, seconds)


ENTRIES = Case("QSG1/APP1", "entries", 300.0)
SHORT = {"hours": 1.0, "outage_after": 0.3, "outage": 0.5}


def test_the_state_after_a_round_is_the_truth_of_that_time(tmp_path):
    """An answer takes a second: each level is that of its answer, so between those of the round's start and end."""
    system = simulated(tmp_path, ENTRIES, hours=0.6, outage_after=0.1, outage=0.4)
    with MqwebServer(system) as server:
        chain = Chain(server, system, ASKED, answer_s=1.0)
        for minute in range(1, 36, 2):
            system.play(system.start + minute * 60 * SECOND)
            before = dict(system.levels)
            chain.round()
            after = system.levels
            states = chain.player.states()
            bounds = [sorted(levels["QSG1/APP1"]["ents_used"] for levels in (before, after))]
            assert is_between(states["QSG1/APP1"].ents_used, bounds[0], slack=3)
            for qmgr in ("QM01", "QM02"):
                blocks = [levels["QSG1/BIG"]["smds"][qmgr]["blocks_used"] for levels in (before, after)]
                assert is_between(states["QSG1/BIG"].smds[qmgr].blocks_used, sorted(blocks), slack=2)
            pages = [
                levels["QM01/PS04"]["pages_total"] - levels["QM01/PS04"]["pages_unused"] for levels in (before, after)
            ]
            assert is_between(states["QM01/PS04"].pages_used, sorted(pages), slack=20)
            assert after["QMD1/INVOICES"]["file_bytes"] <= states["QMD1/INVOICES"].file_bytes + MIB
    assert system.outcomes["QSG1/APP1"].refused


def test_elements_of_large_messages_are_known_by_the_share_of_the_structure_in_use(tmp_path):
    """DISPLAY CFSTATUS shows no elements: a structure that they fill has SIZEUSED(99) and a third of its entries."""
    system = simulated(tmp_path, Case("QSG1/APP1", "elements", 4000.0), **SHORT)
    with MqwebServer(system) as server:
        chain = Chain(server, system, ASKED)
        for minute in (10, 25, 55):
            system.play(system.start + minute * 60 * SECOND)
            chain.round()
            levels, state = system.levels["QSG1/APP1"], chain.player.states()["QSG1/APP1"]
            pct = 100 * levels["elems_used"] / levels["elems_max"]
            assert state.usage_pct == pytest.approx(pct, abs=1.1)
            [elements] = [own for own in resources_of(state) if own.name == "elements"]
            assert (state.elems_used, elements.amount_text) == (None, "")
            assert elements.text == f"{state.usage_pct:.0f} % (SIZEUSED)"
            assert state.ents_used == levels["ents_used"]
    assert system.outcomes["QSG1/APP1"].refused


def is_between(value, bounds, slack):
    return bounds[0] - slack <= value <= bounds[1] + slack


def facts_of(chain, store):
    """Return the facts of each queue of a store in the events of the last round."""
    measures = [event["measured"] for event in chain.events if event["store"] == store]
    return {queue["name"]: queue for measured in measures for queue in measured.get("queues", ())}


def true_facts(queue, time):
    """Return what DISPLAY shows of a queue, summed over its members."""
    known = {"depth": queue.depth, "getters": sum(queue.getters.values()), "putters": sum(queue.putters.values())}
    oldest = queue.oldest if queue.depth else None
    known["oldest_s"] = 0 if oldest is None else (time - oldest) // SECOND
    for name in ("last_get", "last_put"):
        if (moment := getattr(queue, name)) is not None:
            known[name] = as_text(moment // SECOND * SECOND)
    return known


def test_who_has_a_queue_open_is_known_of_all_members_or_not_at_all(tmp_path):
    system = simulated(tmp_path, ENTRIES, **SHORT)
    with MqwebServer(system) as server:
        chain = Chain(server, system, ASKED)
        for minute in (10, 25, 55):  # before the outage, in it, behind it
            system.play(system.start + minute * 60 * SECOND)
            chain.round()
            for store, owner in (("QSG1/APP1", "QSG1"), ("QM01/PS04", "QM01"), ("QMD1/INVOICES", "QMD1")):
                for name, facts in facts_of(chain, store).items():
                    queue = system.queue(owner, name)
                    assert {**facts, **true_facts(queue, system.time)} == facts, (minute, name)
                    assert facts["uncommitted"] == 0
            assert facts_of(chain, "QSG1/APP1")["ORDERS"]["getters"] == (0 if minute == 25 else 2)
        system.queue("QSG1", "ORDERS").getters = {}
        with server.failing("status", qmgr="QM02"):
            system.time += 60 * SECOND
            chain.round()
    orders = facts_of(chain, "QSG1/APP1")["ORDERS"]
    assert orders["depth"] == system.queue("QSG1", "ORDERS").depth
    assert "getters" not in orders  # QM02 may have it open
    assert [place for _, place, _ in chain.complaints] == [server.url]
    (complaint,) = chain.intake.complaints
    assert "QM02" in complaint.text


def test_definitions_that_change_are_followed(tmp_path):
    system = simulated(tmp_path, ENTRIES, **SHORT)
    with MqwebServer(system) as server:
        chain = Chain(server, system, ASKED)
        system.play(system.start + 60 * SECOND)
        chain.round(has_definitions=True)
        assert [event["op"] for event in chain.events] == []
        chain.round()
        system.estate = with_attribute(system.estate, "QSG1/APP1", offld1_th=55)
        system.time += 3600 * SECOND
        chain.round(has_definitions=True)
        assert [(event["op"], event["store"]) for event in chain.events] == [("ALTER", "QSG1/APP1")]
        system.time += SECOND
        chain.round(has_definitions=True)
        assert chain.events == []
    assert chain.player.twins["QSG1/APP1"].config.offld1_th == 55
    assert not chain.complaints and not chain.intake.complaints


def with_attribute(estate, store, **attributes):
    return replace(estate, stores={**estate.stores, store: replace(estate.stores[store], **attributes)})


def check_times(story, case, interval_s):
    """An alert comes at most one round after the truth passes its line, and after the true levels say so."""
    assert story.over - case.early_s <= story.by_rounds["threshold"] <= story.over + interval_s
    if case.shows_full:
        assert story.full - case.early_s <= story.by_rounds["full"] <= story.full + interval_s
    assert story.by_rounds.keys() | {"full"} == story.by_truth.keys()
    assert all(seconds <= story.by_truth[condition] + interval_s for condition, seconds in story.by_rounds.items())
    assert story.paged["rounds"] <= story.paged["truth"] + interval_s


def test_levels_of_a_round_open_alerts_within_an_interval_of_the_truth(tmp_path):
    check_times(follow(tmp_path, ENTRIES, 60, **SHORT), ENTRIES, 60)


@pytest.mark.nightly
@pytest.mark.parametrize(
    "case",
    [
        ENTRIES,
        Case("QSG1/APP1", "elements", 4000.0, shows_full=False),  # SIZEUSED(99): the rest fits no message
        Case("QSG1/BIG", "smds/QM01", 6000.0),
        Case("QM01/PS04", "pages", 1500.0),
        Case("QMD1/INVOICES", "file", 4000.0, early_s=80),  # CURFSIZE is in MB, rounded up
    ],
    ids=lambda case: f"{case.store}-{case.resource}",
)
def test_each_kind_of_store_is_followed_by_rounds_of_30_s(tmp_path, capsys, case):
    story = follow(tmp_path, case, 30, hours=3.0, outage_after=1.0, outage=1.5)
    with capsys.disabled():
        print(f"\n{case.store} {case.resource}: {story.rounds} rounds, full at {story.full} s, over {story.over}")
        print(f"  rounds {story.by_rounds}\n  truth {story.by_truth}\n  first page {story.paged}")
    check_times(story, case, 30)


def test_a_queue_file_on_a_full_file_system_alerts(tmp_path):
    system = simulated(tmp_path, ENTRIES, hours=0.2, outage_after=0.1, outage=0.1)
    system.levels["QMD1/INVOICES"] = {"file_bytes": 5 * MIB, "file_max_bytes": 64 * MIB}
    system.queue("QMD1", "INVOICES").depth = 900
    with MqwebServer(system) as server:
        chain = Chain(server, system, ("QMD1",))
        assert chain.round() == []
        assert chain.player.states()["QMD1/INVOICES"].usage_pct < 10
        system.full_pct["QMD1"], system.time = 100, system.time + 30 * SECOND
        chain.round()
        assert chain.player.states()["QMD1/INVOICES"].usage_pct > 90
    assert {(alert.store, alert.condition) for alert in chain.alerts} >= {("QMD1/INVOICES", "threshold")}
