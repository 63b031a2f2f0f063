"""Scripts of events: what happens to a tiny store, and what must come out. `tests/domain/test_scripts.py` plays them.

`stores/NAME.events` has cases, between empty lines: `#` and a title, the kind of store with its attributes, and a
line an event, each a second after the one before. `put 500 queue=B.QUEUE count=3` is one event, `5 put` are five, as
are `put 10..14 msgid=A0..4`, each with its number; `wait 60` is a HEARTBEAT a minute later, `after=-5` another time;
`reopen` starts the program anew. Sizes are in bytes, or in K, M, G, e (entries with 6 elements) or b (blocks of 8
KB); a store with `forecasts=false` foresees nothing, one with `oracle=false` does what the oracle has no rules of.
Behind `->` stand fields of the state record, or `in_scm`, the lengths of the messages in SCM from the oldest on,
where `3*100` are three of 100; behind ` # ` stands why. Below an event stand all alerts that it brings, but
forecasts: time, change, condition, resources, percent in use, severity, and `part` where another alert is the root of
its incident.
Below an alert, `filled by` names queues with their shares, `says` a text that its cause, an action or a reason has,
`never` one that none has, and `name=` other fields. `python -m tests.cases FILE` writes all but texts as it comes out.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

from tests.kernels.beside import assert_same
from tests.naive.estates import ENTRY_AND_6_ELEMENTS, data_set
from tests.support.oracle_driver import OracleDriver, OraclePageSetDriver, OracleQueueFileDriver, OracleScmDriver
from tests.support.twin_driver import PageSetDriver, QueueFileDriver, ScmDriver, TwinDriver
from twin.alerts.episodes import Alert
from twin.base.units import as_text

STORES = Path(__file__).with_name("stores")
_NO_RULES = "offld1_sz=64K offld2_sz=64K offld3_sz=64K"
KINDS: dict[str, tuple[Any, Any, str]] = {  # twin, oracle, and attributes unless a case has others
    "structure": (TwinDriver, OracleDriver, f"size=100e {_NO_RULES}"),
    "structure-with-rules": (TwinDriver, OracleDriver, "size=40e"),  # IBM's defaults
    "data-set": (
        TwinDriver,
        OracleDriver,
        "size=1000e ds_block=8K offld1_th=0 offld1_sz=0 full_threshold=0 smds.QM01.size=100b smds.QM02.size=1000b",
    ),
    "scm": (ScmDriver, OracleScmDriver, ""),
    "page-set": (PageSetDriver, OraclePageSetDriver, ""),
    "queue-file": (QueueFileDriver, OracleQueueFileDriver, ""),
}
UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "e": ENTRY_AND_6_ELEMENTS, "b": 8 << 10}
CONTENT = {"alter": "attributes", "rebuild": "attributes", "measure": "measured"}
_AMOUNT = re.compile(r"([0-9][0-9_]*)([KMGeb]?)")
_RANGE = re.compile(r"([0-9]+)\.\.([0-9]+)")


class Script(NamedTuple):
    """A case: its file, and its text."""

    path: Path
    text: str

    @property
    def name(self) -> str:
        """The file and the title."""
        return f"{self.path.stem}: {self.text.splitlines()[0].removeprefix('# ')}"


def scripts_of(*paths: Path) -> list[Script]:
    """Return the cases of files."""
    return [Script(path, text) for path in paths for text in path.read_text(encoding="utf-8").strip().split("\n\n")]


def written(path: Path) -> str:
    """Return a file of cases as it comes out."""
    return "\n".join("\n".join([*Played(script).lines, ""]) for script in scripts_of(path))


class Played:
    """A case that was played, by the twin and the oracle.

    Attributes:
        lines: the case as it comes out.
        alerts: all alerts.

    Args:
        script: the case.
        reopens: the program starts anew before each event.
    """

    def __init__(self, script: Script, *, reopens: bool = False) -> None:
        self.lines: list[str] = []
        self._reopens = reopens
        events = [line for line in script.text.splitlines() if not line.startswith("  ")]
        start = next(number for number, line in enumerate(events) if not line.startswith("#"))
        opened, arrow, facts = events[start].partition(" -> ")
        self._open(opened)
        self.lines += [*events[:start], self._with_facts(opened, facts) if arrow else opened]
        notes = _notes(script.text)
        for number, line in enumerate(events[start + 1 :]):
            seen = len(self.twin.alerts)
            self.lines.append(self._event(line))
            for alert in self.twin.alerts[seen:]:
                if alert.condition != "full-forecast":
                    self.lines += _lines_of(alert, notes.get((number, _key(_line_of(alert))), ()))

    @property
    def alerts(self) -> list[Alert]:
        """All alerts, forecasts too."""
        return self.twin.alerts

    def _open(self, line: str) -> None:
        kind, *words = line.split()
        twin, oracle, usual = KINDS[kind]
        attributes = _values([*usual.split(), *words])
        foresees, has_oracle = attributes.pop("forecasts", True), attributes.pop("oracle", True)
        for qmgr, fields in attributes.get("smds", {}).items():
            attributes["smds"][qmgr] = data_set(**fields)
        self.twin, self.oracle = twin(**attributes), oracle(**attributes) if has_oracle else None
        self.twin.decoding.foresees = self.twin.twin.monitor.enabled = foresees

    def _event(self, line: str) -> str:
        event, arrow, facts = line.partition("  # ")[0].partition(" -> ")
        words = event.split()
        times = int(words.pop(0)) if words[0].isdigit() else 1
        spans = [(int(span[1]), int(span[2])) for word in words if (span := _RANGE.search(word))]
        for number in range(spans[0][1] - spans[0][0] + 1) if spans else range(times):
            self._send(*(_RANGE.sub(lambda span, plus=number: str(int(span[1]) + plus), word) for word in words))
            if self.oracle:
                assert_same(self.twin.twin, self.oracle.oracle)
        return self._with_facts(event, facts) + line[len(event) + len(arrow) + len(facts) :] if arrow else line

    def _with_facts(self, event: str, facts: str) -> str:
        """Return an event with its facts as they are now."""
        state = self.twin.state() | {"in_scm": self.twin.lengths_in_scm}
        if self.oracle and "in_scm=" in facts:
            assert self.twin.lengths_in_scm() == self.oracle.lengths_in_scm()
        names = [fact.partition("=")[0] for fact in facts.split()]
        return f"{event} -> {' '.join(f'{name}={_text(_field(state, name))}' for name in names)}"

    def _send(self, op: str, *words: str) -> None:
        if self._reopens or op == "reopen":
            self.twin.reopen()
        if op == "reopen":
            return
        amounts = [word for word in words if "=" not in word]
        fields = _values([word for word in words if "=" in word])
        after = fields.pop("after", 1)
        if op == "wait":
            op, after, amounts = "heartbeat", float(amounts[0]), []
        if op in CONTENT:
            fields = {CONTENT[op]: fields}
        if op == "put":
            fields["length"] = _value(amounts[0]) if amounts else 100
        if op in {*CONTENT, "heartbeat", "restart"}:
            fields["queue"] = None
        for driver in filter(None, (self.twin, self.oracle)):
            driver.send(op.upper(), time=driver.time + round(after * 1e6), **fields)


def _notes(text: str) -> dict[tuple[int, str], list[str]]:
    """Return the lines below alerts, by the number of the event and the alert."""
    notes: dict[tuple[int, str], list[str]] = {}
    number, alert = -2, ""  # the first line is no event, but the store
    for line in text.splitlines():
        if line.startswith("    "):
            notes.setdefault((number, alert), []).append(line)
        elif line.startswith("  "):
            alert = _key(line)
        elif not line.startswith("#"):
            number += 1
    return notes


def _key(line: str) -> str:
    """Return what an alert's line is about: change, condition and resource."""
    return " ".join(line.split()[1:4])


def _line_of(alert: Alert) -> str:
    time = as_text(alert.time).removeprefix("2026-11-20T").removesuffix("Z").removesuffix(".000000")
    usage = "-" if alert.usage_pct is None else f"{alert.usage_pct:g} %"
    role = "" if alert.incident.role == "root" else f" {alert.incident.role}"
    return f"  {time} {alert.change} {alert.condition} {'+'.join(alert.resources)} {usage} {alert.severity}{role}"


def _lines_of(alert: Alert, notes: Iterable[str]) -> Iterator[str]:
    yield _line_of(alert)
    for note in notes:
        kind, _, text = note.strip().partition(" ")
        if kind == "filled":
            yield f"    filled by {', '.join(f'{filler.queue} {filler.share:g}' for filler in alert.fillers)}"
        elif kind in {"says", "never"}:
            every = "\n".join((alert.cause, *alert.actions, *alert.evidence))
            yield note if (text in every) == (kind == "says") else f"    {kind} {text!r} was not so: {every!r}"
        else:
            names = [field.partition("=")[0] for field in note.split()]
            yield f"    {' '.join(f'{name}={_text(getattr(alert, name))}' for name in names)}"


def _values(words: Iterable[str]) -> dict[str, Any]:
    """Return `a=1 b.c=2` as {a: 1, b: {c: 2}}."""
    values: dict[str, Any] = {}
    for word in words:
        name, _, text = word.partition("=")
        *folders, last = name.split(".") if name[0] != '"' else [name.strip('"')]
        place = values
        for folder in folders:
            place = place.setdefault(folder, {})
        place[last] = _value(text)
    return values


def _value(text: str) -> Any:
    if amount := _AMOUNT.fullmatch(text):
        return int(amount[1]) * UNITS[amount[2]]
    if text[:1] in {"[", "{"}:
        return json.loads(text)
    if text in {"true", "false", "null"} or text.replace(".", "", 1).lstrip("-").isdigit():
        return json.loads(text)
    return text.strip('"')


def _field(state: dict[str, Any], name: str) -> Any:
    place: Any = state
    for part in name.split("."):
        place = place[int(part)] if isinstance(place, list) else place.get(part, "absent")
    return place


def _text(value: Any) -> str:
    if callable(value):
        runs = ((length, sum(1 for _ in run)) for length, run in groupby(value()))
        return ",".join(f"{count}*{length}" if count > 1 else str(length) for length, count in runs) or "none"
    return value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))
