"""Two feeds never know less than one: a sample of the messages beside measurements, measurements alone, and all."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import pytest

import twin
from tests.support.partial_feeds import EVENTS, LEVELS, Feed, write_known, write_until
from twin.base.errors import UsageError
from twin.planning.whatif import Answer
from twin.playback.replays import Player, decoded_chunks
from twin.simulation import Measuring
from twin.stores.estimate import Estimate
from twin.stores.message_store import MessageStore

STRUCTURE = """schema = 1
[queue_sharing_group.QSG1]
queue_managers = ["QM01", "QM02"]
[structure."QSG1/APP1"]
size = "24M"
offload = "NONE"
cf_level = 4
[queue."QSG1/ORDERS"]
structure = "APP1"
[queue."QSG1/PAYMENTS"]
structure = "APP1"
"""
DATA_SET = """schema = 1
[queue_sharing_group.QSG1]
queue_managers = ["QM01", "QM02"]
[structure."QSG1/APP1"]
size = "24M"
cf_level = 5
ds_block = "64K"
ds_expand = false
[smds."QSG1/APP1/QM01"]
size = "16M"
[smds."QSG1/APP1/QM02"]
size = "64M"
[queue."QSG1/ORDERS"]
structure = "APP1"
[queue."QSG1/PAYMENTS"]
structure = "APP1"
"""
SCM = """schema = 1
[coupling_facility.CF01]
size = "1G"
scm = "64M"
[queue_sharing_group.QSG1]
queue_managers = ["QM01", "QM02"]
[structure."QSG1/APP1"]
coupling_facility = "CF01"
size = "16M"
offload = "NONE"
cf_level = 4
scm_max_size = "16M"
[queue."QSG1/ORDERS"]
structure = "APP1"
"""
PAGE_SET = """schema = 1
[queue_manager.QM01]
platform = "zos"
version = "9.4"
[page_set."QM01/4"]
pages = 5000
expand = "NONE"
buffer_pool = 3
[storage_class."QM01/DEFAULT"]
page_set = 4
[queue."QM01/LOCAL.A"]
storage_class = "DEFAULT"
[queue."QM01/LOCAL.B"]
storage_class = "DEFAULT"
"""
QUEUE_FILE = """schema = 1
[queue_manager.QMD1]
platform = "distributed"
version = "9.4"
[queue_file."QMD1/INVOICES"]
max_size = "20M"
"""
SITES = {
    "structure": (STRUCTURE, "getter-outage"),
    "data set": (DATA_SET, "getter-outage"),
    "scm": (SCM, "scm-fills-behind"),
    "page set": (PAGE_SET, "page-set-expand-none"),
    "queue file": (QUEUE_FILE, "getter-outage"),
}
FEEDS = {
    "levels": LEVELS,
    "levels, 5 min": Feed(share=0.0, every=10),
    "all and levels": Feed(),
    "all and levels, taken over": Feed(resync=True),
    "20 % and levels": Feed(share=0.2),
    "20 % of the calls and levels": Feed(share=0.2, by="call"),
    "20 % and levels without depths": Feed(share=0.2, depths=False, facts=False),
    "5 % and levels": Feed(share=0.05),
}
DAY = {
    ("structure", "20 % and levels"),
    ("data set", "levels"),
    ("data set", "5 % and levels"),
    ("page set", "5 % and levels"),
}


@dataclass(frozen=True, slots=True)
class Night:
    """A simulated night with measurements each 30 s."""

    estate: twin.Estate
    recording: Path
    store: str
    first_full: int


@cache
def _folder() -> Path:
    return Path(tempfile.mkdtemp(prefix="partial-"))


@cache
def night(site: str) -> Night:
    text, story = SITES[site]
    folder = _folder() / site.replace(" ", "-")
    folder.mkdir()
    path = folder / "estate.toml"
    path.write_text(text)
    estate = twin.load_estate(path)
    recording = folder / "night.arrow"
    outcome = twin.simulate(twin.make_scenario(story), estate, recording, 1, measuring=Measuring(levels=True))
    store, own = next((name, own) for name, own in outcome.stores.items() if own.first_full is not None)
    assert own.first_full is not None
    return Night(estate, recording, store, own.first_full)


@pytest.fixture(autouse=True)
def _simulated(request: pytest.FixtureRequest) -> None:
    """Simulate the night of a test before it: it is shared."""
    night(request.node.callspec.params["site"])


def cases() -> list[Any]:
    return [
        pytest.param(site, feed, marks=() if (site, feed) in DAY else pytest.mark.nightly)
        for site in SITES
        for feed in FEEDS
    ]


AHEAD_S = 1800
ERRORS = {"levels": 0.3, "5 %": 0.25}  # of the time to full half an hour before, by the beginning of a feed's name


@cache
def played(site: str, feed: str) -> tuple[twin.Replayed, dict[str, Any]]:
    """Return what is known half an hour before the store is full, and the last measurement until then."""
    own = night(site)
    known, before = (own.recording.with_name(f"{name}.arrow") for name in ("known", "before"))
    write_known(own.recording, known, EVENTS if feed == "events" else FEEDS[feed])
    last = write_until(known, before, own.first_full - AHEAD_S * 10**6, own.store)
    return twin.replay(before, own.estate), last


@pytest.mark.parametrize(("site", "feed"), cases())
def test_the_time_to_full_is_known_half_an_hour_before(site: str, feed: str) -> None:
    store = night(site).store
    foreseen = played(site, feed)[0].states[store].first
    assert foreseen is not None and foreseen.time_to_full_s is not None
    tolerance = next((error for name, error in ERRORS.items() if feed.startswith(name)), 0.2)
    assert foreseen.time_to_full_s.p50 == pytest.approx(AHEAD_S, rel=tolerance)
    of_events = played(site, "events")[0].states[store].first
    assert of_events is not None and foreseen.resource == of_events.resource


@pytest.mark.parametrize(("site", "feed"), cases())
def test_the_last_state_is_that_of_the_last_measurement(site: str, feed: str) -> None:
    replayed, measured = played(site, feed)
    state = replayed.states[night(site).store]
    for name in ("ents_used", "elems_used", "pages_used"):
        if name in measured:
            assert getattr(state, name) == pytest.approx(measured[name], rel=0.02), name
    for qmgr, own in measured.get("smds", {}).items():
        assert state.smds[qmgr].blocks_used == pytest.approx(own["blocks_used"], rel=0.02, abs=2), qmgr


@pytest.mark.parametrize(
    ("site", "feed"),
    [
        pytest.param(site, feed, marks=() if (site, feed) in DAY else pytest.mark.nightly)
        for site in SITES
        for feed in ("levels", "20 % and levels", "5 % and levels")
    ],
)
def test_what_if_answers_as_with_all_events(site: str, feed: str) -> None:
    """Half as many puts again take less time, of levels, too; of gets, and of a replay, levels alone show nothing."""
    own, answers = night(site), list[Answer]()
    for known in (feed, "events"):
        played(site, known)
        write_known(
            own.recording, path := own.recording.with_name("asked.arrow"), EVENTS if known == "events" else FEEDS[feed]
        )
        moment = twin.at_moment(path, own.estate, own.store, own.first_full - AHEAD_S * 10**6)
        assert moment.is_whole is (known == "events")
        answers.append(twin.what_if(moment, traffic=twin.Traffic(puts=1.5)))
        if known == "levels":
            with pytest.raises(UsageError, match=r"gets x 0: no gets of .* are reported; expected: puts or lengths"):
                twin.what_if(moment, traffic=twin.Traffic(gets=0))
    partial, whole = (answer.after for answer in answers)
    assert partial.resource == whole.resource
    assert partial.p50 == pytest.approx(whole.p50, rel=0.3)


@pytest.mark.parametrize(
    "site", [pytest.param(site, marks=() if site == "queue file" else pytest.mark.nightly) for site in SITES]
)
def test_complete_events_are_no_sample_and_pay_nothing(site: str) -> None:
    """Without measurements the estimate is untouched; beside measurements the model stays as events have it."""
    own, states = night(site), list[bytes]()
    for feed in (EVENTS, Feed()):
        known = own.recording.with_name("complete.arrow")
        write_known(own.recording, known, feed)
        player = Player(own.estate)
        for decoded in decoded_chunks(known, own.estate):
            player.feed(decoded)
        store = player.twins[own.store]
        assert isinstance(store, MessageStore)
        assert not store.estimate.is_partial and store.estimate.shares == []
        assert store.monitor.memory.estimated_at is None
        assert store.state().coverage is None
        assert feed.every or msgspec.structs.asdict(store.estimate) == msgspec.structs.asdict(Estimate())
        states.append(store.tables.store.messages.tobytes() + store.tables.store.stocks.tobytes())
    assert states[0] == states[1]
