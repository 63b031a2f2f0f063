"""Rows of a runbook: what helps, by condition and facts, as TOML. Described in docs/runbook.md.

The rows of mqtwin are in `twin/alerts/runbook.toml`; a site's own file is named by `runbook` in `[site]`. A row has no
expressions: a fact is a name that the model knows to be true, a placeholder a text that it has. Both are in the tables
below, so that a file is checked before any alert opens.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from string import Formatter

import msgspec

from twin.base.conditions import Condition, Pool
from twin.base.decoding import UNREADABLE
from twin.estate.errors import EstateError

FACTS = frozenset((
    *Pool,  # the kind of resource
    *("message_store", "structure", "administration", "page_set", "queue_file", "queue_manager"),  # the store
    *("coupling_facility", "uniform_cluster"),
    *("filler_known", "unread", "read_in_vain"),  # the queue that fills most
    *("sized", "alterable", "below_size", "auto_alter", "policy_seen", "offloads_later", "facility_known"),
    *("ds_expands", "expansion_failed"),  # a data set
    *("expand_none", "extent_missing", "can_retry"),  # a page set
    *("file_system_limits", "file_can_grow"),  # a queue file
    *("depth_known", "depth_can_grow"),  # a queue
    *("distributed", "user_known"),  # the platform of a queue manager; a structure that uses most of a facility
    *("members_stopped", "members_missing", "member_spare"),  # of a uniform cluster
))  # fmt: skip
PLACEHOLDERS = frozenset((
    *("store", "resource", "queue", "queue_mqsc", "scope", "qsgdisp", "qmgr", "qmgr_mqsc"),
    *("structure", "structure_mqsc", "policy_name", "facility", "size", "size_kb", "size_now", "size_now_kb"),
    *("larger", "and_init_size", "room", "rebuild_risk", "sizes_before", "offload_sooner", "offload_now"),
    *("larger_scm", "scm_room", "scm_before"),
    *("psid", "expand", "file_queue_mqsc", "limit", "missing", "megabytes", "megabytes_now"),
    *("max_depth", "larger_depth"),
    *("user", "user_policy", "excess", "total", "user_before", "members", "undo_members", "hosts", "member"),
))  # fmt: skip
PROCEDURES = frozenset((  # steps that the model makes
    *("change_size", "enlarge_unseen", "change_scm", "change_policy", "copy_data_set", "look", "start_members"),
))  # fmt: skip
_ID = re.compile("[a-z]+(-[a-z0-9]+)*")
_MAX_BYTES = 1 << 20


class StepRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A step: its text and what to type; in `steps` the name of a procedure stands for steps that the model makes."""

    say: str
    command: str | None = None
    when: tuple[str, ...] = ()
    unless: tuple[str, ...] = ()


class ActionRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An action: for conditions, when all facts of `when` hold and none of `unless`.

    `instead`: no other row of the condition counts but those that say so. `command` is one step.
    """

    id: str
    conditions: tuple[str, ...] = msgspec.field(name="for")
    say: str
    when: tuple[str, ...] = ()
    unless: tuple[str, ...] = ()
    precondition: str | None = msgspec.field(name="if", default=None)
    command: str | None = None
    steps: tuple[StepRow | str, ...] = ()
    risk: str | None = None
    undo: str | None = None
    instead: bool = False

    @property
    def texts(self) -> Iterator[str]:
        """Its texts with placeholders."""
        yield from filter(None, (self.say, self.command, self.precondition, self.risk, self.undo))
        for step in self.own_steps:
            yield from filter(None, (step.say, step.command))

    @property
    def facts(self) -> set[str]:
        """The facts that it and its steps name."""
        return {*self.when, *self.unless}.union(*((*step.when, *step.unless) for step in self.own_steps))

    @property
    def own_steps(self) -> list[StepRow]:
        """Its steps, without those that the model makes."""
        return [step for step in self.steps if isinstance(step, StepRow)]


class _File(msgspec.Struct, forbid_unknown_fields=True):
    action: tuple[ActionRow, ...]


def read_runbook(path: Path) -> tuple[ActionRow, ...]:
    """Read and check the rows of a file. EstateError: one of them is wrong, or the file."""
    try:
        data = path.read_bytes()
        if len(data) > _MAX_BYTES:
            raise EstateError(f"{path}: {len(data):,} bytes; expected: a runbook of at most {_MAX_BYTES:,}")
        rows = msgspec.toml.decode(data, type=_File).action
    except OSError as wrong:
        raise EstateError(f"{path}: cannot be read ({wrong.strerror}); expected: a runbook") from None
    except UNREADABLE as wrong:
        raise EstateError(f"{path}: {' '.join(str(wrong).split())}; expected: a runbook of [[action]] rows") from None
    seen: set[str] = set()
    for number, row in enumerate(rows, 1):
        if problem := _problem(row) or ("id: another action has it" if _key(row) in seen else ""):
            raise EstateError(f"{path}: action {number} ({row.id}): {problem}")
        seen.add(_key(row))
    return rows


def placeholders(text: str) -> list[str]:
    """Return the names between braces. ValueError: it is no text with placeholders."""
    fields = [field for field in Formatter().parse(text) if field[1] is not None]
    if any(spec or conversion for _, _, spec, conversion in fields):
        raise ValueError("a placeholder is a name between braces")
    return [str(name) for _, name, _, _ in fields]


def _key(row: ActionRow) -> str:
    return f"{row.id} {sorted(row.conditions)} {sorted(row.when)} {sorted(row.unless)}"


def _problem(row: ActionRow) -> str:
    """Return what is wrong with a row, and what is expected; "": nothing."""
    if not _ID.fullmatch(row.id):
        return "id; expected: words of small letters, with - between them"
    try:
        named = {name for text in row.texts for name in placeholders(text)}
    except ValueError as wrong:
        return f"{wrong}; expected: texts with names between braces, {{{{ for a brace"
    steps = {step for step in row.steps if isinstance(step, str)}
    for what, names, known in (
        ("condition", set(row.conditions), frozenset(map(str, Condition))),
        ("fact", row.facts, FACTS),
        ("placeholder", named, PLACEHOLDERS),
        ("procedure", steps, PROCEDURES),
    ):
        if wrong_names := sorted(names - known):
            return f"{wrong_names[0]!r} is an unknown {what}; expected: {', '.join(sorted(known))}"
    if not row.conditions or (row.command is not None and row.steps):
        return "for names no condition" if not row.conditions else "command and steps; expected: one of them"
    return ""
