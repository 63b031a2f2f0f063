"""Records of the acts topic: what counts is what belongs to a request, in the order of the topic."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from tests.support.asked_acts import ID, NOW, approval, estate, outlook, request
from twin.base.units import as_text
from twin.estate import Estate
from twin.records import (
    ActRecord,
    Acts,
    Approved,
    Expired,
    Handed,
    Measured,
    Requested,
    Resulted,
    Withdrawn,
    hash_of,
    is_same_person,
    read_act,
)
from twin.records.acts import MAX_ACTS

LATER = as_text(NOW + 120_000_000)


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Estate:
    return estate(tmp_path_factory.mktemp("estate"))


def records(asked: Requested) -> dict[str, ActRecord]:
    """Return one record of each kind."""
    common: dict[str, Any] = {"id": asked.id, "sha256": asked.sha256, "time": LATER}
    return {
        "requested": asked,
        "approved": approval(asked),
        "withdrawn": Withdrawn(**common, who="ann"),
        "expired": Expired(**common, text="too late"),
        "handed": Handed(**common, runner="host", token="0" * 32),
        "result": Resulted(**common, status="ok", who="runner host", text=""),
        "measured": Measured(
            **common,
            after_s=300,
            state_time=LATER,
            usage_pct=70.0,
            size=None,
            full_s=None,
            probability=None,
            alert="open",
            done=None,
        ),
    }


def folded(*order: ActRecord) -> Acts:
    acts = Acts()
    for record in order:
        acts.take(record)
    return acts


@pytest.mark.parametrize(
    ("order", "status"),
    [
        ("requested", "requested"),
        ("requested approved", "approved"),
        ("requested approved withdrawn", "withdrawn"),
        ("requested approved expired", "expired"),
        ("requested approved handed", "handed"),
        ("requested approved handed result measured", "ok"),
        ("requested handed", "requested"),  # nobody has approved it
        ("requested approved withdrawn handed", "withdrawn"),  # the first in the topic counts
        ("requested approved handed withdrawn expired", "handed"),
        ("requested withdrawn approved handed", "withdrawn"),
        ("requested result measured", "requested"),
        ("requested approved handed measured", "handed"),
        ("requested approved handed handed result result", "ok"),
    ],
)
def test_what_counts_is_what_belongs_to_a_request(own: Estate, order: str, status: str) -> None:
    known = records(request(own))
    acts = folded(*(known[name] for name in order.split()))
    assert acts[ID].status == status
    assert folded(*acts_of(acts, known)).keys() == acts.keys()


def acts_of(acts: Acts, known: dict[str, ActRecord]) -> list[ActRecord]:
    """Return the records that count, all of which the fold names."""
    counting = [record for record in known.values() if acts.has(record)]
    assert counting
    return counting


def test_a_record_that_is_replayed_changes_nothing(own: Estate) -> None:
    known = list(records(request(own)).values())
    once = [known[0], known[1], known[4], known[5]]
    acts = folded(*once)
    before = acts[ID]
    for record in (*once, *known):
        assert not acts.take(record) or isinstance(record, Measured)
    assert acts[ID] is before and acts[ID].status == "ok" and acts.ignored == 10


def test_nothing_without_a_request_counts(own: Estate) -> None:
    _, *others = records(request(own)).values()
    acts = folded(*others)
    assert not acts and acts.ignored == 6 and acts.last == 0


@pytest.mark.parametrize(
    ("who", "seconds", "sha256", "expected"),
    [
        ("ann", 60, None, "ann has requested it; expected: somebody else"),
        ("ANN", 60, None, "ANN has requested it; expected: somebody else"),
        ("\uff41nn", 60, None, "has requested it; expected: somebody else"),  # a wide a
        ("bob", 60, "0" * 64, "the hash 000000000000 is of something else; expected: "),
        ("bob", 900, None, "it expires at 2026-11-20T12:15:00"),
        ("bob", -61, None, "it expires at 2026-11-20T12:15:00"),  # of a clock that has gone back
    ],
)
def test_an_approval_needs_another_person_the_hash_and_its_time(
    own: Estate, who: str, seconds: int, sha256: str | None, expected: str
) -> None:
    asked = request(own)
    time = as_text(NOW + seconds * 1_000_000)
    acts = folded(asked)
    assert expected in acts[ID].problem_of_approval(who, sha256 or asked.sha256, time)
    approved = Approved(id=ID, sha256=sha256 or asked.sha256, time=time, who=who)
    assert not acts.take(approved) and acts[ID].status == "requested"


def test_each_person_approves_once_and_three_are_enough(own: Estate) -> None:
    asked = request(own)
    acts = folded(asked, *(approval(asked, who) for who in ("bob", "Bob", "eve", "dan", "zoe")))
    assert acts[ID].approvers == ("bob", "eve", "dan")


def test_a_request_whose_text_is_not_that_of_its_hash_is_none(own: Estate) -> None:
    asked = request(own)
    for changed in (
        {"statement": "ALTER PSID(4) EXPAND(NONE)"},
        {"target": "QM02"},
        {"language": "SETXCF"},
        {"sha256": "0" * 64},
    ):
        assert not folded(msgspec.structs.replace(asked, **changed))
    assert asked.sha256 == hash_of(asked.language, asked.target, asked.statement)
    assert len({hash_of(*parts) for parts in (("a", "b", "c"), ("ab", "", "c"), ("a", "bc", ""))}) == 3


def test_of_two_that_hand_over_at_once_the_first_counts(own: Estate) -> None:
    known = records(request(own))
    first, second = known["handed"], msgspec.structs.replace(known["handed"], token="1" * 32)
    acts = folded(known["requested"], known["approved"], first, second)
    assert acts.has(first) and not acts.has(second)


def test_a_person_may_say_what_became_of_an_unknown_one_and_nothing_else(own: Estate) -> None:
    known = records(request(own))
    unknown = msgspec.structs.replace(known["result"], status="unknown")
    acts = folded(known["requested"], known["approved"], known["handed"], unknown)
    assert acts[ID].is_undecided and not acts.take(unknown)
    failed = msgspec.structs.replace(unknown, status="failed", who="bob")
    assert acts.take(failed) and acts[ID].status == "failed" and not acts[ID].is_undecided
    assert not acts.take(known["result"]) and acts[ID].status == "failed"


def test_every_record_is_read_back_and_a_wrong_one_is_none(own: Estate) -> None:
    asked = request(own)
    for record in records(asked).values():
        assert read_act(msgspec.json.encode(record)) == record
    content = msgspec.to_builtins(asked)
    for wrong in (
        {"id": "x"},
        {"kind": "clear-queue"},
        {"time": "yesterday"},
        {"expires": "2026-02-30T00:00:00Z"},
        {"state_time": "9999-01-01T00:00:00Z"},
        {"step": 0},
        {"change": "executed"},
        {"who": ""},
        {"statement": ""},
        {"statement": "A" * 501},
    ):
        with pytest.raises(Exception, match=r"."):
            read_act(msgspec.json.encode({**content, **wrong}))


def test_the_first_of_too_many_are_forgotten(own: Estate) -> None:
    asked, acts = request(own), Acts()
    for number in range(MAX_ACTS + 5):
        acts.take(msgspec.structs.replace(asked, id=f"{number:016x}"))
    assert len(acts) == MAX_ACTS and f"{4:016x}" not in acts and f"{5:016x}" in acts


def test_names_that_differ_otherwise_are_of_two_people() -> None:
    assert not is_same_person("ann", "anna") and is_same_person("Zoë", "zoe\u0308")
    assert outlook(None).p50 is None
