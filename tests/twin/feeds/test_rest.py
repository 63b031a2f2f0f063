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
from tests.twin.feeds.rounds import NOON, SECOND, body, pages, status, structure, structure_status, text_body
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
PAGE_SET = {
    "pages_total": 1078,
    "pages_unused": 1070,
    "pages_persistent": 5,
    "pages_nonpersistent": 3,
    "pages_used": 8,
    "expansions": 2,
}
MEMBERS = ("QM01", "QM02")
LAST_PUT = "2026-11-20T11:59:58.000000Z"


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


def of_queues(*members):
    """Return answers to DISPLAY QSTATUS. members: (queue manager, parameters of ORDERS, or None of one that failed)."""
    return [
        (qmgr, rounds.QUEUES, body(reason=3008) if parameters is None else body(status(**parameters)))
        for qmgr, parameters in members
    ]


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

    @pytest.mark.parametrize(
        ("text", "code"), [("{}", "foreign"), ("no json", "foreign"), ('{"commandResponse":[', "truncated")]
    )
    def test_other_texts_are_complaints(self, site, text, code):
        events, intake = read("rest", Page(text.encode(), "answer.json", NOON), estate=site, qmgr="QM01")
        assert (events, dict(intake.counts)) == ([], {code: 1, "nothing-read": 1})

    @pytest.mark.parametrize("parameters", [{"queue": "", "curdepth": 7}, {"queue": "", "type": "QLOCAL"}])
    def test_a_queue_without_a_name_is_a_complaint(self, site, parameters):
        text = json.dumps({"commandResponse": [{"completionCode": 0, "reasonCode": 0, "parameters": parameters}]})
        events, intake = read("rest", Page(text.encode(), "answer.json", NOON), estate=site, qmgr="QM01")
        assert (events, dict(intake.counts)) == ([], {"bad-value": 1})


class TestRounds:
    def test_a_round_is_one_measurement_a_store(self, site):
        reader = Reader(site)
        structure_event, page_set_event = sorted(reader.read(rounds.LEVELS), key=lambda event: -event["time"])
        assert page_set_event == {
            "time": NOON + 3 * SECOND,
            "qmgr": "QM01",
            "op": "MEASURE",
            "store": "QM01/PS04",
            "measured": {
                **PAGE_SET,
                "messages": 5,
                "queues": [
                    {
                        "name": "LOCAL",
                        "depth": 5,
                        "getters": 1,
                        "putters": 0,
                        "uncommitted": 0,
                        "oldest_s": 17,
                        "last_get": "2026-11-20T11:30:00.000000Z",
                        "last_put": LAST_PUT,
                    }
                ],
                "asked": ["QM01"],
            },
        }
        assert structure_event == {
            "time": NOON + 5 * SECOND,
            "qmgr": "QM02",
            "op": "MEASURE",
            "store": "QSG1/APP1",
            "measured": {
                "ents_max": 14599,
                "ents_used": 6372,
                "size": 1 << 30,
                "usage_pct": 17,
                "smds": {"QM01": {"blocks_total": 9999, "blocks_used": 13, "messages": 123}},
                "messages": 12,
                "queues": [
                    {
                        "name": "ORDERS",
                        "depth": 12,
                        "getters": 0,
                        "putters": 3,
                        "uncommitted": 0,
                        "oldest_s": 18,
                        "last_get": "2026-11-20T11:45:00.000000Z",
                        "last_put": LAST_PUT,
                    }
                ],
                "asked": ["QM01", "QM02"],
            },
        }
        assert not reader.intake.counts

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
    def test_handles_are_the_sum_over_the_members_and_times_the_latest(self, site):
        first = {"ipprocs": 1, "opprocs": 2, "lgettime": "11.58.00", "curdepth": 9}
        second = {"ipprocs": 2, "opprocs": 0, "lgettime": "", "curdepth": 11, "msgage": ""}
        events = Reader(site).read(of_queues(("QM01", first), ("QM02", second)))
        assert queues_of(events)["ORDERS"] == {
            "name": "ORDERS",
            "depth": 11,
            "getters": 3,
            "putters": 2,
            "uncommitted": 0,
            "oldest_s": 17,
            "last_get": "2026-11-20T11:58:00.000000Z",
            "last_put": LAST_PUT,
        }

    @pytest.mark.parametrize("second", [(), [("QM02", None)]])
    def test_without_a_member_a_sum_of_0_is_not_known(self, site, second):
        reader = Reader(site)
        events = reader.read(of_queues(("QM01", {"opprocs": 4}), *second))
        orders = queues_of(events)["ORDERS"]
        assert orders["putters"] == 4
        assert not {"getters", "uncommitted"} & orders.keys()
        assert events[0]["measured"]["asked"] == ["QM01"]
        [text] = reader.complaints("no-answer")
        assert text.startswith(
            "no answer of QM02 to DISPLAY QSTATUS; of QSG1 QM01 answered; expected: an answer of each"
        )

    def test_a_member_that_does_not_answer_is_one_complaint_until_it_answers_again(self, site):
        reader = Reader(site)
        both, alone = of_queues(("QM01", {}), ("QM02", {})), of_queues(("QM01", {}))
        for number, answers in enumerate((both, alone, alone, both, alone)):
            reader.read(answers, start=NOON + number * 30 * SECOND)
        assert reader.intake.counts == {"no-answer": 2}

    def test_a_round_that_does_not_ask_for_queues_misses_nobody(self, site):
        reader = Reader(site)
        reader.read(rounds.DEFINITIONS)
        assert not reader.intake.counts

    def test_an_answer_that_failed_in_part_counts_for_what_it_shows(self, site):
        reader = Reader(site)
        answers = [("QM01", rounds.QUEUES, body(status(), reason=3008)), *of_queues(("QM02", {}))]
        assert queues_of(reader.read(answers))["ORDERS"]["getters"] == 0
        assert reader.intake.counts == {"command-failed": 1}

    @pytest.mark.parametrize(("uncom", "number"), [("NO", 0), ("YES", None), (3, 3), ("4", 4), ("", None), (-1, None)])
    def test_uncommitted_is_a_number_where_it_is_shown(self, site, uncom, number):
        page = body(status("INVOICES", qsgdisp="", curfsize=1, curmaxfs=2088960, uncom=uncom))
        events = Reader(site).read([("QMD1", rounds.QUEUES, page)])
        assert queues_of(events)["INVOICES"].get("uncommitted") == number
        assert events[0]["measured"]["file_bytes"] == 1 << 20

    @pytest.mark.parametrize("text", ["", " ", "-1"])
    def test_blank_and_minus_1_are_not_known(self, site, text):
        words = ("ipprocs", "opprocs", "msgage", "lgetdate", "lgettime", "lputdate", "lputtime", "uncom")
        events = Reader(site).read(of_queues(("QM01", dict.fromkeys(words, text))))
        assert queues_of(events).get("ORDERS", {"name": "ORDERS", "depth": 12}) == {"name": "ORDERS", "depth": 12}
        assert events[0]["measured"]["messages"] == 12

    def test_what_is_no_count_or_time_is_a_complaint_and_the_depth_counts(self, site):
        for odd in ({"ipprocs": "many"}, {"opprocs": 1 << 40}, {"lgettime": "25.00.00"}, {"uncom": "MAYBE"}):
            reader = Reader(site)
            events = reader.read(of_queues(("QM01", odd), ("QM02", {})))
            assert events[0]["measured"]["messages"] == 12
            assert reader.intake.counts["bad-value"] == 1

    def test_a_depth_alone_is_no_fact_of_a_queue(self, site):
        page = body({"queue": "ORDERS", "type": "QUEUE", "curdepth": 7})
        events = Reader(site).read([(qmgr, rounds.QUEUES, page) for qmgr in ("QM01", "QM02")])
        assert [event["measured"] for event in events] == [{"messages": 7}]

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

    def test_definitions_equal_to_the_estate_are_no_event(self, site):
        reader = Reader(site)
        assert reader.read(rounds.DEFINITIONS) == []
        assert not reader.intake.counts
        assert not reader.intake.unknown

    def test_a_changed_structure_is_an_alter_once_until_it_changes_again(self, site):
        reader = Reader(site)
        changed = self.altered(offld1th=60, offld1sz="8K", dsexpand="NO")
        assert reader.read(changed) == [
            {
                "time": NOON + SECOND,
                "qmgr": "QM02",
                "op": "ALTER",
                "store": "QSG1/APP1",
                "attributes": {"offld1_th": 60, "offld1_sz": 8192, "ds_expand": False},
            }
        ]
        assert reader.read(changed, start=NOON + 60 * SECOND) == []
        again = reader.read(self.altered(offld1th=50, offld1sz="8K", dsexpand="NO"), start=NOON + 90 * SECOND)
        assert [event["attributes"] for event in again] == [{"offld1_th": 50}]
        back = reader.read(rounds.DEFINITIONS, start=NOON + 120 * SECOND)
        expected = {"offld1_th": 70, "offld1_sz": 32768, "ds_expand": True}
        assert [event["attributes"] for event in back] == [expected]
        assert not reader.intake.counts

    def test_alters_come_behind_the_measurements_of_their_round(self, site):
        answers = [*self.altered(offld3th=85), *rounds.LEVELS]
        assert [event["op"] for event in Reader(site).read(answers)] == ["MEASURE", "MEASURE", "ALTER"]

    def test_a_definition_that_no_event_takes_is_one_complaint(self, site):
        reader = Reader(site)
        for number in range(3):
            assert reader.read(self.altered(cflevel=9), start=NOON + number) == []
        [text] = reader.complaints("definition-changed")
        assert "cf_level = 9" in text

    @pytest.mark.parametrize(
        ("queue", "text"),
        [
            ({"maxdepth": 5}, "queue QSG1/ORDERS: MAXDEPTH 5, in the estate 100000"),
            ({"cfstruct": "APP2"}, "queue QSG1/ORDERS: store QSG1/APP2, in the estate QSG1/APP1"),
        ],
    )
    def test_a_changed_queue_is_one_complaint(self, site, queue, text):
        usual = {"queue": "ORDERS", "type": "QLOCAL", "qsgdisp": "SHARED", "cfstruct": "APP1", "maxdepth": 100_000}
        reader = Reader(site)
        for number, own in enumerate((usual | queue, usual | queue, usual, usual | queue)):
            assert reader.read([("QM01", rounds.LOCAL, body(own))], start=NOON + number) == []
        complaints = reader.complaints("definition-changed")
        assert len(complaints) == 2
        assert complaints[0].startswith(f"{text}; expected: this in the estate")

    def test_a_storage_class_with_another_page_set_moves_its_queues(self, site):
        definitions = [*rounds.DEFINITIONS]
        definitions[2] = ("QM01", rounds.CLASSES, body({"stgclass": "DEFAULT", "psid": 5}))
        reader = Reader(site)
        assert reader.read(definitions) == []
        [text] = reader.complaints("definition-changed")
        assert text.startswith("queue QM01/LOCAL: store QM01/PS05, in the estate QM01/PS04;")

    def test_a_new_queue_and_a_new_structure_are_unknown_once_with_their_place(self, site):
        reader = Reader(site)
        new = {"queue": "NEW", "type": "QLOCAL", "qsgdisp": "SHARED", "cfstruct": "APP2", "maxdepth": 50}
        reader.read(
            [
                ("QM02", rounds.STRUCTURES, body(structure(cfstruct="APP2"))),
                ("QM02", rounds.LOCAL, body(new)),
                *((qmgr, rounds.QUEUES, body(status("NEW"))) for qmgr in ("QM01", "QM02")),
            ]
        )
        lines = [line.partition("; add ")[2] for line in reader.intake.lines_for_unknown()]
        assert [*reader.intake.unknown] == [("QM01", "NEW"), ("QM01", "QSG1/APP2")]
        assert lines == [
            '[queue."QSG1/NEW"] max_depth = 50 structure = "APP2"',
            '[structure."QSG1/APP2"] size = "..."',
        ]


def test_data_sets_in_use_do_not_change_how_a_structure_is_defined(site):
    """Behind an ALTER to OFFLOAD(DB2) messages remain in the data sets."""
    definition, levels = ("QM01", rounds.STRUCTURES, body(structure(offload="DB2"))), rounds.LEVELS
    reader = Reader(site)
    events = reader.read([definition, *levels])
    assert events[-1]["attributes"] == {"offload": "DB2"}
    assert reader.intake.facts.value("structure", "QSG1/APP1", "offload") == "DB2"


class TestStates:
    def connection(self, **parameters):
        usual = {"smdsconn": "QM01", "cfstruct": "APP1", "openmode": "UPDATE", "status": "OPEN", "avail": "NORMAL"}
        return [("QM01", rounds.CONNECTIONS, body(usual | {"expandst": "NORMAL"} | parameters))]

    def test_a_data_set_that_cannot_expand_or_be_opened_is_one_complaint_until_it_changes(self, site):
        reader = Reader(site)
        states = ({}, {"expandst": "MAXIMUM"}, {"expandst": "MAXIMUM"}, {"status": "OPENFAIL", "avail": "ERROR"}, {})
        for number, own in enumerate(states):
            reader.read(self.connection(**own), start=NOON + number)
        name = "connection of QM01 to the data set of QM01 for APP1"
        ends = "; expected: a state in which messages are stored and read"
        assert reader.complaints("not-available") == [
            f"{name}: EXPANDST(MAXIMUM){ends}",
            f"{name}: STATUS(OPENFAIL), AVAIL(ERROR){ends}",
        ]

    def test_a_structure_and_a_data_set_that_failed_are_complaints(self, site):
        reader = Reader(site)
        data_set = {"cfstatus": "APP1", "type": "SMDS", "smds": "QM02", "status": "FAILED", "access": "SUSPENDED"}
        reader.read([("QM01", rounds.DATA_SETS, body(data_set, structure_status(status="FAILED")))])
        assert [text.partition(";")[0] for text in reader.complaints("not-available")] == [
            "data set of QM02 for QSG1/APP1: STATUS(FAILED), ACCESS(SUSPENDED)",
            "QSG1/APP1: STATUS(FAILED)",
        ]
        assert ("smds", "QSG1/APP1/QM02") in reader.intake.facts.objects


class TestTexts:
    def test_lines_of_the_command_server_are_passed_over(self, site):
        lines = (
            "CSQN137I QM01 'DISPLAY QSTATUS' accepted for CMDSCOPE(QM02), sent to 1",
            "CSQN205I   COUNT=       4, RETURN=00000000, REASON=00000004",
            "CSQN121I QM01 'DISPLAY QSTATUS' command responses from QM02",
            "CSQM439I !MQ2 QSTATUS(ORDERS) TYPE(QUEUE) QSGDISP(SHARED) CURDEPTH(7) IPPROCS(2) OPPROCS(0)",
            "CSQ9022I !MQ2 CSQMDRTS ' DISPLAY QSTATUS' NORMAL COMPLETION",
            "CSQN205I   COUNT=       2, RETURN=00000000, REASON=00000000",
            "CSQN122I QM01 'DISPLAY QSTATUS' command for CMDSCOPE(QM02) normal completion",
        )
        reader = Reader(site)
        events = reader.read([("QM01", rounds.QUEUES, text_body(*lines, reason="00000004"))])
        assert [(event["qmgr"], event["measured"]["asked"]) for event in events] == [("QM02", ["QM02"])]
        assert queues_of(events)["ORDERS"] == {"name": "ORDERS", "depth": 7, "getters": 2}
        assert not reader.intake.counts.keys() - {"no-prefix"}

    def test_the_failure_of_a_member_is_one_complaint_until_it_is_over(self, site):
        lines = (
            "CSQN135E QM01 Queue manager QM02 not active in queue-sharing group",
            "CSQN123E QM01 'DISPLAY QSTATUS' command for CMDSCOPE(QM02) abnormal completion",
        )
        failed = ("QM02", rounds.QUEUES, text_body(*lines, return_code="0000000C", reason="00000008"))
        reader = Reader(site)
        for number in range(3):
            assert reader.read([failed], start=NOON + number) == []
        assert reader.intake.counts == {"command-failed": 1, "no-answer": 1}
        assert "not active in queue-sharing group" in reader.complaints("command-failed")[0]
        reader.read(of_queues(("QM02", {})), start=NOON + 9)
        assert reader.read([failed], start=NOON + 10) == []
        assert reader.intake.counts["command-failed"] == 2

    def test_text_of_a_distributed_queue_manager_is_measured(self, site):
        text = [
            "AMQ8450I: Display queue status details.",
            "   QUEUE(INVOICES)                         TYPE(QUEUE)",
            "   CURDEPTH(17)                            CURFSIZE(3)",
            "   CURMAXFS(2088960)                       IPPROCS(0)",
            "   OPPROCS(2)                              UNCOM(1)",
        ]
        response = {"completionCode": 0, "reasonCode": 0, "text": text}
        data = json.dumps({"commandResponse": [response], "overallCompletionCode": 0, "overallReasonCode": 0}).encode()
        events = Reader(site).read([("QMD1", rounds.QUEUES, data)])
        assert queues_of(events)["INVOICES"] == {
            "name": "INVOICES",
            "depth": 17,
            "getters": 0,
            "putters": 2,
            "uncommitted": 1,
        }

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

    def test_the_depth_of_one_with_a_known_definition_counts_for_its_store(self, site):
        reader = Reader(site)
        definition = {"queue": "NEW", "type": "QLOCAL", "qsgdisp": "SHARED", "cfstruct": "APP1"}
        reader.read([("QM01", "DISPLAY QLOCAL(*)", body(definition))])
        events = reader.read([self.LEVELS, *self.states(("ORDERS", 12), ("NEW", 9_400), ("SYSTEM.NEW", 5))])
        own = [event for event in events if event["store"] == "QSG1/APP1"]
        assert queues_of(own).keys() == {"ORDERS", "NEW"} and queues_of(own)["NEW"]["depth"] == 9_400
        assert own[0]["measured"]["messages"] == 9_412
        assert ("QM01", "NEW") in reader.intake.unknown and not reader.intake.unplaced

    def test_one_without_a_definition_is_kept_as_such(self, site):
        reader = Reader(site)
        events = reader.read([self.LEVELS, *self.states(("ORDERS", 12), ("NEW", 9_400), ("SYSTEM.NEW", 5))])
        assert queues_of(events).keys() == {"ORDERS"}
        assert reader.intake.unplaced == {("QSG1", "NEW")}

    def test_one_of_a_store_that_the_estate_lacks_is_left_out(self, site):
        reader = Reader(site)
        definition = {"queue": "NEW", "type": "QLOCAL", "qsgdisp": "SHARED", "cfstruct": "APP9"}
        reader.read([("QM01", "DISPLAY QLOCAL(*)", body(definition))])
        assert queues_of(reader.read(self.states(("ORDERS", 12), ("NEW", 9_400)))).keys() == {"ORDERS"}


class TestFileSystems:
    """A queue file whose MAXFSIZE is larger than its file system cannot grow to it."""

    @pytest.mark.parametrize(
        ("attributes", "limit"),
        [
            ({"datfssz": "20000", "datfsuse": "90"}, 3_000),  # free space and what it has
            ({"datfssz": 20000, "datfsuse": 100}, 1_000),
            ({"datfssz": 4_000_000, "datfsuse": 1}, 2_088_960),
            ({"datfssz": "SHARED", "datfsuse": "SHARED", "qmfssz": 253824, "qmfsuse": 50}, 1_000 + 126_912),
            ({"logfssz": "100", "logfsuse": "99"}, 2_088_960),  # of the log
            ({}, 2_088_960),  # before 9.4
        ],
    )
    @pytest.mark.parametrize("is_first", [False, True])
    def test_its_limit_is_the_room_that_there_is(self, site, attributes, limit, is_first):
        own = {"queue": "INVOICES", "type": "QUEUE", "curdepth": 9, "curfsize": 1000, "curmaxfs": 2_088_960}
        answers = [
            ("QMD1", rounds.QUEUES, body(own)),
            ("QMD1", "DISPLAY QMSTATUS ALL", body({"qmname": "QMD1", "status": "RUNNING", **attributes})),
        ]
        [event] = Reader(site).read(answers[::-1] if is_first else answers)
        assert event["measured"]["file_bytes"] == 1_000 << 20
        assert event["measured"]["file_max_bytes"] == limit << 20


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
