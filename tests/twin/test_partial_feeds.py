"""Two feeds never know less than one: a sample of the messages beside measurements, measurements alone, and all."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import twin
from tests.support.partial_feeds import EVENTS, LEVELS, Feed, write_known
from twin.simulation import Measuring

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
DAY = {("structure", "20 % and levels"), ("data set", "levels"), ("page set", "5 % and levels")}


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


@cache
def played(site: str, feed: str) -> twin.Replayed:
    own = night(site)
    known = own.recording.with_name(f"{len(feed)}-{feed.replace(' ', '-').replace('%', '')}.arrow")
    write_known(own.recording, known, EVENTS if feed == "events" else FEEDS[feed])
    return twin.replay(known, own.estate)


def first_page(site: str, feed: str) -> Any:
    own = night(site)
    pages = (alert for alert in played(site, feed).alerts if alert.level == "page" and alert.store == own.store)
    return next((page for page in pages if page.time <= own.first_full), None)


def cases() -> list[Any]:
    return [
        pytest.param(site, feed, marks=() if (site, feed) in DAY else pytest.mark.nightly)
        for site in SITES
        for feed in FEEDS
    ]


@pytest.mark.parametrize(("site", "feed"), cases())
def test_any_mixture_pages_as_early_as_all_events(site: str, feed: str) -> None:
    of_events, page = first_page(site, "events"), first_page(site, feed)
    assert page is not None
    late_min = (page.time - of_events.time) / 60e6
    assert late_min <= 2 + (5 if "5 min" in feed else 0), f"{late_min:.1f} min later than with all events"
    assert page.resource == of_events.resource


@pytest.mark.parametrize(("site", "feed"), cases())
def test_the_last_state_is_that_of_the_last_measurement(site: str, feed: str) -> None:
    exact, state = played(site, "events").states[night(site).store], played(site, feed).states[night(site).store]
    for name in ("ents_used", "elems_used", "pages_used"):
        if hasattr(exact, name):
            assert getattr(state, name) == pytest.approx(getattr(exact, name), abs=60), name
