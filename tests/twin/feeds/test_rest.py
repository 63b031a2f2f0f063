"""Answers of the REST interface: one by one, and the pages of a round together."""

from __future__ import annotations

import json
import time
from datetime import UTC, timedelta, timezone
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.profile import examples
from tests.twin.feeds import rounds
from tests.twin.feeds.read import read
from tests.twin.feeds.rounds import NOON, SECOND, body, pages, status, structure, structure_status
from tests.twin.feeds.samples import REST
from twin.estate import load_estate
from twin.feeds import FeedOptions, Intake, Page, make_feed
from twin.feeds.site import see_estate

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
max_depth = 100000
[page_set."QM01/4"]
pages = 20000
[storage_class."QM01/DEFAULT"]
page_set = 4
[queue."QM01/LOCAL"]
storage_class = "DEFAULT"
[queue_file."QMD1/INVOICES"]
"""
MEMBERS = ("QM01", "QM02")


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    path = tmp_path_factory.mktemp("site") / "estate.toml"
    path.write_text(ESTATE)
    return load_estate(path)


class Reader:
    """A feed that keeps running: its events a round, and its complaints."""

    def __init__(self, estate, **options):
        self.intake = Intake(estate)
        self.feed = make_feed("rest", self.intake, FeedOptions(zone=UTC, **options))

    def read(self, answers, **of_pages):
        events = [event for page in pages(*answers, **of_pages) for event in self.intake.sift(self.feed.take(page))]
        assert all(event.get("measured") or event.get("attributes") for event in events)
        return events

    def complaints(self, code):
        return [complaint.text for complaint in self.intake.complaints if complaint.code == code]


def queues_of(events):
    """Return the facts of queues by name."""
    return {queue["name"]: queue for event in events for queue in event["measured"].get("queues", ())}


class TestRest:
    def test_answers_are_measured_like_texts(self, site):
        page = Page(REST.encode(), "https://host:9443/ibmmq/rest/v2/admin/action/qmgr/QM01/mqsc", NOON)
        events, intake = read("rest", page, estate=site)
        assert [(event["qmgr"], event["store"], event["measured"]) for event in events] == [
            ("QM01", "QSG1/APP1", {"ents_max": 10, "ents_used": 4, "size": 1 << 30, "messages": 7}),
        ]
        assert intake.facts.value("queue", "QSG1/NEW", "structure") == "APP1"

    def test_a_file_needs_the_name_of_its_queue_manager(self, site):
        page = Page(REST.encode(), "answer.json", NOON)
        assert read("rest", page, estate=site)[1].counts == {"no-qmgr": 1}
        assert read("rest", page, estate=site, qmgr="QM01")[0]


class TestRounds:
    def test_nothing_is_measured_before_the_last_page(self, site):
        reader = Reader(site)
        assert reader.read(rounds.LEVELS, is_last=False) == []
        later = reader.read(rounds.LEVELS, start=NOON + 30 * SECOND, is_last=False)
        assert {event["store"]: event["time"] for event in later} == {
            "QM01/PS04": NOON + 3 * SECOND,
            "QSG1/APP1": NOON + 5 * SECOND,
        }
        end = [*reader.intake.sift(reader.feed.finish())]
        assert [event["time"] for event in end] == [NOON + 33 * SECOND, NOON + 35 * SECOND]
        assert reader.read(rounds.LEVELS[:1], start=NOON + 60 * SECOND)[0]["time"] == NOON + 60 * SECOND

    def test_a_page_without_headers_ends_a_round_and_is_read_by_itself(self, site):
        reader = Reader(site)
        reader.read(rounds.LEVELS[:1], is_last=False)
        page = Page(body(structure_status(entsused=7)), "https://h/ibmmq/rest/v3/admin/action/qmgr/QM02/mqsc", NOON + 9)
        events = [*reader.intake.sift(reader.feed.take(page))]
        assert [(event["qmgr"], event["measured"]["ents_used"]) for event in events] == [("QM01", 6372), ("QM02", 7)]

    @settings(max_examples=examples(200), deadline=None)
    @given(st.data())
    def test_of_a_round_with_pages_missing_no_measurement_is_empty(self, site, data):
        answers = [*rounds.DEFINITIONS, *rounds.LEVELS]
        chosen = data.draw(st.lists(st.sampled_from(answers), max_size=2 * len(answers)))
        reader = Reader(site)
        events = reader.read(chosen, is_last=data.draw(st.booleans()))
        events += reader.intake.sift(reader.feed.finish())
        for event in events:
            assert event["measured"].keys() - {"asked"}
        orders = queues_of(events).get("ORDERS")
        asked = {qmgr for qmgr, command, _ in chosen if command == rounds.QUEUES}
        assert (orders is not None) == bool(asked)
        if orders is not None:
            assert ("getters" in orders) == (asked == {"QM01", "QM02"})


class TestReasons:
    SENT = ("CSQN205I   COUNT=       2, RETURN=00000000, REASON=00000004", "CSQN137I !MQ1A ' DISPLAY QSTATUS' accepted")

    @pytest.mark.parametrize(
        ("completion", "reason", "overall", "is_failure"),
        [
            (0, 0, (0, 0), False),
            (0, 4, (0, 0), False),  # a first reply set: more follow
            (0, 4, (0, 4), False),
            (1, 4, (0, 0), True),
            (2, 4, (2, 3008), True),
            (0, 8, (0, 0), True),
        ],
    )
    @pytest.mark.parametrize("texts", [{"text": list(SENT)}, {"message": list(SENT)}, {}])
    def test_reason_4_of_completion_0_says_that_more_follows(
        self, site, completion, reason, overall, is_failure, texts
    ):
        first = {"completionCode": completion, "reasonCode": reason, **texts}
        answer = json.loads(body(status(ipprocs=2)))
        answer["commandResponse"].insert(0, first)
        answer |= dict(zip(("overallCompletionCode", "overallReasonCode"), overall, strict=True))
        reader = Reader(site)
        events = reader.read([("QM02", rounds.QUEUES, json.dumps(answer).encode())])
        assert queues_of(events)["ORDERS"]["getters"] == 2
        assert bool(reader.complaints("command-failed")) == is_failure


class TestHandles:
    def test_more_than_200_queues_are_further_measurements(self, tmp_path):
        names = [f"Q{number:04d}" for number in range(450)]
        lines = "".join(f'[queue."QSG1/{name}"]\nstructure = "APP1"\n' for name in names)
        path = tmp_path / "estate.toml"
        path.write_text(ESTATE + lines)
        reader = Reader(load_estate(path))
        reader.intake.resync = True
        answers = [(qmgr, rounds.QUEUES, body(*map(status, ["ORDERS", *names]))) for qmgr in ("QM01", "QM02")]
        events = reader.read([*rounds.LEVELS[:1], *answers])
        assert [len(event["measured"]["queues"]) for event in events] == [200, 200, 51]
        assert len({event["time"] for event in events}) == 1
        assert [event["measured"].keys() - {"queues", "asked"} for event in events] == [
            {"ents_max", "ents_used", "size", "usage_pct", "messages", "resync"},
            set(),
            set(),
        ]
        assert all(len(json.dumps(event["measured"])) < 64 << 10 for event in events)

    def test_one_answer_is_one_member(self, site):
        """Without a round: of a group of two a sum of 0 is not known, of a private queue it is."""
        page = Page(body(status(), status("LOCAL")), "https://h/ibmmq/rest/v3/admin/action/qmgr/QM01/mqsc", NOON)
        queues = queues_of(read("rest", page, estate=site, zone=UTC)[0])
        assert "getters" not in queues["ORDERS"]
        assert queues["LOCAL"]["getters"] == 0

    def test_texts_show_the_same_facts(self, site):
        text = "CSQM201I QM01 CSQMDRTC  DISPLAY QSTATUS DETAILS\nQSTATUS(LOCAL)\nTYPE(QUEUE)\nCURDEPTH(5)\n"
        text += "IPPROCS(0)\nOPPROCS(1)\nUNCOM(NO)\nMSGAGE(3)\nLGETDATE(2026-11-20)\nLGETTIME(11.30.00)\n END QSTATUS\n"
        events, _ = read("display", Page(text.encode(), "text", NOON), estate=site, zone=UTC)
        assert events[0]["measured"] == {
            "messages": 5,
            "queues": [
                {
                    "name": "LOCAL",
                    "depth": 5,
                    "getters": 0,
                    "putters": 1,
                    "uncommitted": 0,
                    "oldest_s": 3,
                    "last_get": "2026-11-20T11:30:00.000000Z",
                }
            ],
            "asked": ["QM01"],
        }


class TestLocalTimes:
    def last_get(self, site, zone, time, **parameters):
        page = Page(body(status("LOCAL", **parameters)), "https://h/ibmmq/rest/v3/admin/action/qmgr/QM01/mqsc", time)
        events, intake = read("rest", page, estate=site, zone=zone)
        return queues_of(events)["LOCAL"].get("last_get"), intake

    def test_times_are_local_ones_of_the_queue_managers_system(self, site):
        assert self.last_get(site, timezone(timedelta(hours=1)), NOON)[0] == "2026-11-20T10:30:00.000000Z"
        moment, intake = self.last_get(site, None, NOON)
        assert (moment, dict(intake.counts)) == ("2026-11-20T11:30:00.000000Z", {"no-zone": 1})

    def test_a_time_after_the_answer_is_not_known(self, site):
        moment, intake = self.last_get(site, UTC, NOON, lgettime="12.10.00", lputtime="12.10.00")
        assert (moment, dict(intake.counts)) == (None, {"no-zone": 1})
        assert "expected: --zone, that of its system" in intake.complaints[0].text

    @pytest.mark.parametrize(("minutes", "hour"), [(20, "00"), (70, "01")])
    def test_of_an_hour_that_comes_twice_it_is_the_latest_time_before_the_answer(self, site, minutes, hour):
        """2026-10-25: 02:10 in Berlin is 00:10 and 01:10 UTC."""
        midnight = 1_792_886_400_000_000
        moment, _ = self.last_get(
            site,
            ZoneInfo("Europe/Berlin"),
            midnight + minutes * 60 * SECOND,
            lgetdate="2026-10-25",
            lgettime="02.10.00",
            lputdate="",
        )
        assert moment == f"2026-10-25T{hour}:10:00.000000Z"


class TestDefinitions:
    def altered(self, **attributes):
        definitions = [*rounds.DEFINITIONS]
        definitions[1] = ("QM02", rounds.STRUCTURES, body(structure(**attributes)))
        return definitions

    def test_alters_come_behind_the_measurements_of_their_round(self, site):
        answers = [*self.altered(offld3th=85), *rounds.LEVELS]
        assert [event["op"] for event in Reader(site).read(answers)] == ["MEASURE", "MEASURE", "ALTER"]


class TestTexts:
    def test_a_name_in_an_address_may_be_encoded(self, site):
        page = Page(body(structure_status()), "https://h/ibmmq/rest/v3/admin/action/qmgr/QM%2E01/mqsc", NOON)
        _, intake = read("rest", page, estate=site)
        assert "QM.01" in intake.complaints[0].text


class TestQueuesThatTheEstateLacks:
    LEVELS = ("QM01", "DISPLAY CFSTATUS(*) TYPE(SUMMARY)", body(structure_status()))

    def states(self, *queues):
        return [
            (qmgr, rounds.QUEUES, body(*(status(name, curdepth=depth) for name, depth in queues))) for qmgr in MEMBERS
        ]

    def test_one_without_a_definition_is_kept_as_such(self, site):
        reader = Reader(site)
        events = reader.read([self.LEVELS, *self.states(("ORDERS", 12), ("NEW", 9_400), ("SYSTEM.NEW", 5))])
        assert queues_of(events).keys() == {"ORDERS"}
        assert reader.intake.unplaced == {("QSG1", "NEW")}


class TestFirstLook:
    """The first answers of `mqtwin start --live`, while there is no estate."""

    def test_its_time_grows_with_the_number_of_queues_and_not_faster(self, tmp_path):
        few, many = (min(self.seconds(tmp_path, number) for _ in range(3)) for number in (250, 2_000))
        assert many < 20 * few  # 8 were it alone; 64 if it grew with the square

    def seconds(self, tmp_path, queues):
        names = [f"APP.{number:05d}" for number in range(queues)]
        local = [{"queue": name, "type": "QLOCAL", "qsgdisp": "SHARED", "cfstruct": "APP1"} for name in names]
        states = [(qmgr, rounds.QUEUES, body(*map(status, names))) for qmgr in ("QM01", "QM02")]
        answers = pages(*rounds.DEFINITIONS[:2], ("QM01", rounds.LOCAL, body(*local)), rounds.LEVELS[0], *states)
        began = time.process_time()
        seen = see_estate((), tmp_path, FeedOptions(zone=UTC), {}, answers)
        took = time.process_time() - began
        assert seen.text.count("[queue.") == queues
        return took
