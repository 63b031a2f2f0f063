"""Damaged pages of every format: no crash, no undeclared error, no hang, and no event that a decoder refuses."""

from __future__ import annotations

import msgspec
import pytest

from tests.support.profile import examples
from tests.tools.fuzz import __main__ as fuzz
from tests.tools.fuzz.pages import pages_of
from tests.tools.fuzz.rounds import INPUTS, Fuzzer, Tally
from twin.feeds import FORMATS
from twin.feeds.mqsc_objects import MqscObjects

ROUNDS = examples(60)


@pytest.mark.parametrize("name", FORMATS)
def test_damaged_pages_are_complaints_at_most(name, tmp_path):
    fuzzer = Fuzzer(name, tmp_path)
    total = Tally()
    for number in range(ROUNDS):
        tally, failures = fuzzer.play(number)
        assert not failures, failures[0]
        total.add(tally)
    assert total.inputs == ROUNDS * INPUTS
    assert total.events > 0
    assert total.refused > 0 or name == "connect"  # whose bodies are any bytes


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_has_pages(name):
    assert all(pages_of(name))


def test_a_run_continues_where_another_stopped(tmp_path):
    at_once, in_two = Tally(), Tally()
    fuzzer = Fuzzer("rest", tmp_path)
    fuzz.play_turn(fuzzer, at_once, 6 * INPUTS, tmp_path)
    fuzz.play_turn(fuzzer, in_two, 2 * INPUTS, tmp_path)
    in_two = fuzz.load(tmp_path, "rest")
    fuzz.play_turn(fuzzer, in_two, 6 * INPUTS, tmp_path)
    assert fuzz.load(tmp_path, "rest") == in_two
    assert (in_two.inputs, in_two.refused, in_two.events) == (at_once.inputs, at_once.refused, at_once.events)


def test_an_error_is_found_and_its_input_kept(tmp_path, monkeypatch):
    def fail(*_):
        raise KeyError("QLOCAL")

    monkeypatch.setattr(MqscObjects, "take", fail)
    tally = Tally()
    fuzz.play_turn(Fuzzer("rest", tmp_path), tally, INPUTS, tmp_path)
    assert tally.failures > 0
    assert (tmp_path / "rest-0.bin").read_bytes()
    assert msgspec.json.decode((tmp_path / "rest.json").read_bytes())["failures"] == tally.failures
