"""Names of structures in the CFRM policy, of groups of one to four letters, in every text that prints one."""

import re
from collections.abc import Iterable
from dataclasses import replace

import pytest

from tests.naive.estates import structure
from tests.support import runbooks
from twin.base.conditions import ELEMENTS, ENTRIES, SCM, Condition
from twin.base.units import GIB
from twin.capacity import alter_size, cfrm, steps, structure_statement
from twin.estate import Structure, policy_name_of
from twin.records import sentences_of
from twin.sizing import parse_mix, plan_scm
from twin.sizing.structure import bare_structure, offload_all_commands

GROUPS = {"Q": "Q@@@APP1", "QS": "QS@@APP1", "QS1": "QS1@APP1", "QSG1": "QSG1APP1"}


@pytest.fixture(params=GROUPS)
def config(request: pytest.FixtureRequest) -> Structure:
    """Return a structure of a group of one to four letters."""
    group = request.param
    return replace(structure(), name=f"{group}/APP1", queue_sharing_group=group, size=GIB, scm_max_size=GIB)


def names_in(lines: Iterable[str]) -> set[str]:
    """Return the names of structures in SETXCF commands, statements and sentences about the policy."""
    return set(re.findall(r"(?:STRNAME=|STRUCTURE NAME\(|SCMMAXSIZE of )([\w@/]+)", "\n".join(lines)))


def test_each_text_names_the_structure_as_the_policy_does(config: Structure) -> None:
    store, sizes = config.name, {"size": 2 * GIB, "scm_max_size": GIB}
    printed = {
        "refused": sentences_of(runbooks.pool_actions(config, ENTRIES, GIB, (), alterable=False)),
        "below SIZE": sentences_of(runbooks.pool_actions(config, ENTRIES, GIB // 2, (), alterable=True)),
        "automatic": sentences_of(
            runbooks.pool_actions(replace(config, allow_auto_alter=True), ENTRIES, 1, (), alterable=True)
        ),
        "at SIZE": sentences_of(runbooks.pool_actions(config, ELEMENTS, GIB, (), alterable=True)),
        "SCM": sentences_of(runbooks.scm_actions(config, SCM, ())),
        "alter": sentences_of(runbooks.alter_actions(config, ())),
        "over-committed": sentences_of(runbooks.facility_actions(Condition.SCM_OVERCOMMITTED, {store: GIB}, None, GIB)),
        "exhausted": sentences_of(runbooks.facility_actions(Condition.SCM_EXHAUSTED, {store: GIB})),
        "size": [offload_all_commands(config)],
        "statement": [structure_statement(config)],
        "plan": steps(config, sizes),
        "plan's policy": [cfrm(config, sizes)],
    }
    expected = {policy_name_of(store)}
    assert {what: names_in(lines) for what, lines in printed.items()} == dict.fromkeys(printed, expected)
    assert expected == {GROUPS[config.queue_sharing_group]}


def test_names_of_a_structure() -> None:
    assert (structure().short_name, structure().policy_name) == ("APP1", "QSG1APP1")
    assert (bare_structure(GIB).short_name, bare_structure(GIB).policy_name) == ("NAME", "NAME")


def test_sizes_of_the_policy_are_whole_kb_as_a_number_without_a_unit_is_kb() -> None:
    config = replace(bare_structure(1_000_000), init_size=999_999)
    expected = "STRUCTURE NAME(NAME) SIZE(977K) INITSIZE(977K) SCMALGORITHM(KEYPRIORITY1) SCMMAXSIZE(1M)"
    assert plan_scm(config, parse_mix(("1K:900",))).cfrm == expected
    assert alter_size("name", 1_000_000) == "SETXCF START,ALTER,STRNAME=name,SIZE=977K"
