"""Inputs that reached other code once are taken or refused, by every parser."""

from __future__ import annotations

import pytest

from tests.tools.fuzz.guided import KEPT_BYTES, ODD, TARGETS, corpus_of, keep, play


@pytest.mark.parametrize("name", TARGETS)
def test_a_parser_takes_or_refuses_all_that_was_kept(name: str) -> None:
    corpus = corpus_of(name)
    assert sum(map(len, corpus)) <= KEPT_BYTES
    for data in (*TARGETS[name].seeds(), *corpus, *ODD):
        play(name, data)


def test_a_corpus_has_the_short_inputs_that_reach_other_lines(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr("tests.tools.fuzz.guided.CORPUS", tmp_path / "corpus")
    (tmp_path / "found").mkdir()
    for number, text in enumerate((b"5", b"77", b"4G", b"888G", b"x")):
        (tmp_path / "found" / str(number)).write_bytes(text)
    assert keep("size", tmp_path / "found") == len(corpus_of("size"))
    assert b"5" in corpus_of("size")
    assert not {b"77", b"888G"} & set(corpus_of("size"))  # like shorter ones
