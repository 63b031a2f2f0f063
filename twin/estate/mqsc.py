"""MQSC commands executed in order, and the objects that are defined after them.

The rules [IBM: MQ 9.2 and 9.4 reference, DEFINE queues q085690_, DEFINE CFSTRUCT q085510_, DEFINE STGCLASS q085750_,
DEFINE PSID q085680_, "Change, Copy, and Create" commands]:

- DEFINE of an object that exists fails unless it says REPLACE: the first definition stays (with a warning here).
  REPLACE sets every attribute anew, ALTER only those given. Of several DEFINE PSID only the last counts.
- What DEFINE leaves out comes from the LIKE object, else from the default object (SYSTEM.DEFAULT.LOCAL.QUEUE,
  SYSTEMST) where the text defines it, else it is IBM's default. A disposition is not copied.
- QSGDISP(SHARED): one object for the group. QSGDISP(GROUP): a master from which every queue manager of the group gets
  a copy, but for one that has an object of its own. COPY: like the master, here. QMGR, the default: of the queue
  manager that runs it.
- A text imported for a queue-sharing group was run by each of its queue managers, one imported for a queue manager by
  that one; CMDSCOPE(QM02) runs a command there, CMDSCOPE('*') everywhere in the group.
- CFLEVEL defaults to 3, QLOCAL's STGCLASS to DEFAULT, OFFLDnTH, OFFLDnSZ, DSBLOCK, DSEXPAND, EXPAND and BUFFPOOL to
  what `twin.estate.model` has.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace

from twin.estate.errors import EstateError, Problems, did_you_mean, listed
from twin.estate.mqsc_text import (
    OBJECT_SYNONYMS,
    OBJECTS,
    SKIPPED_OBJECTS,
    VERB_SYNONYMS,
    VERBS,
    ZOS_ONLY,
    ObjectWords,
    Parameter,
    Statement,
    first_words,
    parameters,
    statements,
)
from twin.estate.rows import SourceValue, convert

Owner = tuple[str, str]  # ("SHARED", "QSG1"), ("GROUP", "QSG1") or ("QMGR", "QM01")

_MESSAGE = re.compile(r"\b(?:CSQ[MN9X][0-9]{3}I|AMQ8[0-9]{3}[A-Z]?)\b")  # of the output of a command
DEFAULT_CF_LEVEL = 3  # DEFINE CFSTRUCT without CFLEVEL [IBM MQ 9.2 and 9.3 DEFINE CFSTRUCT, syntax diagram]
DEFAULT_STORAGE_CLASS = "DEFAULT"  # DEFINE QLOCAL without STGCLASS [IBM MQ 9.2 DEFINE QLOCAL, syntax diagram]


@dataclass(frozen=True, slots=True)
class Definition:
    """Object after the commands that concern it."""

    type: str  # "QLOCAL", "QALIAS", "QREMOTE", "CFSTRUCT", "STGCLASS" or "PSID"
    disposition: str  # "QMGR", "COPY", "GROUP" or "SHARED"
    where: str  # the command that made it: file and line
    values: Mapping[str, SourceValue] = field(default_factory=dict)
    defined: bool = True  # False: only altered, its definition is in the TOML file


@dataclass(frozen=True, slots=True)
class Surroundings:
    """Facts of the estate that the commands need."""

    groups: Mapping[str, tuple[str, ...]]  # queue-sharing group -> its queue managers
    group_of: Mapping[str, str]  # queue manager -> its group
    distributed: frozenset[str]  # queue managers that are not on z/OS
    elsewhere: Callable[[str, Owner, str], bool]  # True if the TOML file describes (namespace, owner, name)


@dataclass(frozen=True, slots=True)
class _Command:
    verb: str
    type: str
    words: ObjectWords
    name: str
    options: Mapping[str, Parameter]
    where: str

    def option(self, keyword: str) -> str:
        """Return the value of CMDSCOPE, QSGDISP or LIKE; "" if absent or blank."""
        parameter = self.options.get(keyword)
        return "" if parameter is None else _single(parameter)

    def __str__(self) -> str:
        return f"{self.verb} {self.type}({self.name})"


class Definitions:
    """Objects that MQSC texts define, alter and delete, in the order of reading."""

    def __init__(self, surroundings: Surroundings, problems: Problems) -> None:
        """Start without any object. problems: gets the errors of commands."""
        self._problems = problems
        self._objects: dict[tuple[str, Owner], dict[str, Definition]] = {}  # by namespace and owner, then by name
        self.warnings: list[str] = []
        self._around = surroundings
        self._unknown: set[tuple[str, str]] = set()  # (object, keyword) of warnings

    def read(self, text: str, file: str, *, group: str | None = None, qmgr: str | None = None) -> None:
        """Execute a text; wrong commands become problems. EstateError: it ends within a command, or is of DISPLAY."""
        runners = self._around.groups[group] if group else (qmgr or "",)
        for number, statement in enumerate(statements(text, file)):
            if _is_output(statement, is_first=number == 0):
                raise EstateError(
                    f"{statement.locate()}: output of DISPLAY, no MQSC command; expected: the commands, or mqtwin"
                    f" estate import display:{file}"
                )
            with self._problems.collect():
                command = _command(statement)
                if command is not None:
                    self._run(command, runners, group or self._around.group_of.get(qmgr or "", ""))

    def objects(self, space: str, owner: Owner) -> Mapping[str, Definition]:
        """Return the objects of a namespace ("queue", "structure", "storage_class", "page_set") and owner, by name."""
        return self._objects.get((space, owner), {})

    def _run(self, command: _Command, runners: tuple[str, ...], group: str) -> None:
        owners = self._owners(command, self._scope(command, runners, group), group)
        values = self._values(command)
        if command.verb == "DEFINE":
            for owner in owners:
                self._define(command, owner, values)
        elif command.verb == "ALTER":
            self._alter(command, owners, values)
        else:
            self._delete(command, owners)

    def _values(self, command: _Command) -> dict[str, SourceValue]:
        """Return the checked attributes of a command that an estate uses."""
        values: dict[str, SourceValue] = {}
        for keyword, parameter in command.options.items():
            with self._problems.collect():
                self._read_parameter(command, keyword, parameter, values)
        return values

    def _read_parameter(
        self, command: _Command, keyword: str, parameter: Parameter, values: dict[str, SourceValue]
    ) -> None:
        where = f"{parameter.where}: {command} {parameter}"
        reading = command.words.read.get(keyword)
        if reading is None:
            self._not_read(command, keyword, where)
            return
        attribute, check = reading
        if attribute in values:
            raise EstateError(f"{where}: {attribute} is given twice; give it once")
        values[attribute] = convert(where, _single(parameter), check)

    def _not_read(self, command: _Command, keyword: str, where: str) -> None:
        """Raise EstateError for a misspelling, else warn once: a newer MQ may have added the attribute."""
        if keyword in command.words.valid:
            return
        meant = did_you_mean(keyword, command.words.read, 0.7)
        if meant:
            raise EstateError(f"{where}: no such attribute{meant}")
        if (command.type, keyword) not in self._unknown:
            self._unknown.add((command.type, keyword))
            self.warnings.append(f"{where}: {keyword} is not known here and ignored, wherever it stands")

    def _scope(self, command: _Command, runners: tuple[str, ...], group: str) -> tuple[str, ...]:
        scope = command.option("CMDSCOPE")
        members = self._around.groups.get(group, ())
        if not scope:
            return runners
        if scope == "*":
            return members or runners
        if scope not in (members or runners):
            raise EstateError(
                f"{command.where}: CMDSCOPE({scope}): must be one of {listed(members or runners)}, or '*'"
            )
        return (scope,)

    def _owners(self, command: _Command, runners: tuple[str, ...], group: str) -> list[Owner]:
        """Return the owners whose objects the command defines or changes, a master before its copies."""
        if command.type in ZOS_ONLY and any(runner in self._around.distributed for runner in runners):
            raise EstateError(f"{command.where}: {command}: valid only on z/OS; leave it out for {listed(runners)}")
        disposition = _disposition(command)
        if disposition in ("SHARED", "GROUP") and not group:
            who = listed(runners)
            raise EstateError(f"{command.where}: {command}: {who} is in no queue-sharing group; put it into one")
        if disposition == "SHARED":
            return [("SHARED", group)]
        if disposition == "GROUP":
            return [("GROUP", group), *(("QMGR", member) for member in self._around.groups[group])]
        return [("QMGR", runner) for runner in runners]

    def _define(self, command: _Command, owner: Owner, values: Mapping[str, SourceValue]) -> None:
        disposition = _disposition(command)
        copied = disposition == "GROUP" and owner[0] == "QMGR"
        existing = self.objects(command.words.space, owner).get(command.name)
        if existing is not None and existing.type != command.type:
            raise EstateError(
                f"{command.where}: {command}: {command.name} is a {existing.type} already ({existing.where})"
            )
        if existing is not None and existing.defined:
            if copied and existing.disposition != "COPY":
                return
            if not (copied or "REPLACE" in command.options or command.type == "PSID"):
                if "NOREPLACE" not in command.options:
                    before = f"it is defined already ({existing.where})"
                    self.warnings.append(
                        f"{command.where}: {command} has no effect: {before}; say REPLACE to replace it"
                    )
                return
        inherited = self._like(command, owner)
        definition = Definition(command.type, "COPY" if copied else disposition, command.where, {**inherited, **values})
        self._put(command, owner, definition)

    def _like(self, command: _Command, owner: Owner) -> Mapping[str, SourceValue]:
        """Return the attributes of the LIKE object, or of the default object if the text defines it."""
        like = command.option("LIKE")
        name = like or command.words.like
        places: Iterable[Owner]
        if command.option("QSGDISP") == "COPY":
            places, name = [("GROUP", self._around.group_of.get(owner[1], ""))], like or command.name
        elif owner[0] == "QMGR":
            places = [owner, ("SHARED", self._around.group_of.get(owner[1], ""))]
        else:
            places = [("SHARED", owner[1]), *(("QMGR", member) for member in self._around.groups[owner[1]])]
        for place in places:
            model = self.objects(command.words.space, place).get(name)
            if model is not None and model.type == command.type:
                return model.values
        if like and not like.startswith("SYSTEM"):
            raise EstateError(
                f"{command.where}: {command} LIKE({like}): no {command.type} of that name is defined before it"
            )
        return {}

    def _alter(self, command: _Command, owners: list[Owner], values: Mapping[str, SourceValue]) -> None:
        space = command.words.space
        group_wide = any(owner[0] == "GROUP" for owner in owners)
        altered = False
        for owner in owners:
            existing = self.objects(space, owner).get(command.name)
            if existing is None and self._around.elsewhere(space, owner, command.name):
                existing = Definition(command.type, owner[0], command.where, defined=False)
            if existing is None or (group_wide and existing.disposition == "QMGR"):
                continue
            if existing.type != command.type:
                raise EstateError(f"{command.where}: {command}: {command.name} is a {existing.type} ({existing.where})")
            raised = _offload_when_raised(command, existing, values)
            self._put(command, owner, replace(existing, values={**existing.values, **raised, **values}))
            altered = True
        if not altered and not command.name.startswith("SYSTEM"):
            raise EstateError(f"{command.where}: {command}: {self._not_defined(command, owners)}")

    def _delete(self, command: _Command, owners: list[Owner]) -> None:
        """Delete the object if it is there: scripts delete before they define."""
        group_wide = any(owner[0] == "GROUP" for owner in owners)
        for owner in owners:
            existing = self.objects(command.words.space, owner).get(command.name)
            own = existing is not None and existing.disposition == "QMGR"
            if existing is not None and existing.type == command.type and not (group_wide and own):
                del self._objects[command.words.space, owner][command.name]

    def _put(self, command: _Command, owner: Owner, definition: Definition) -> None:
        self._objects.setdefault((command.words.space, owner), {})[command.name] = definition

    def _not_defined(self, command: _Command, owners: list[Owner]) -> str:
        groups = {self._around.group_of.get(name, name) for _, name in owners}
        if any(command.name in self.objects(command.words.space, ("SHARED", group)) for group in groups):
            return "it is shared; say QSGDISP(SHARED)"
        same_space = (names for (space, _), names in self._objects.items() if space == command.words.space)
        names = {name for definitions in same_space for name in definitions}
        return f"it is not defined before{did_you_mean(command.name, names)}"


def _offload_when_raised(
    command: _Command, existing: Definition, values: Mapping[str, SourceValue]
) -> Mapping[str, SourceValue]:
    """Return OFFLOAD(DB2) for a structure that ALTER raises to CFLEVEL(5) without saying OFFLOAD.

    Its large messages were in Db2 before. That DB2 is the default here is [assumed]: IBM's reference gives both
    defaults of the rules (q085510_) and the default of a new structure (q003670_), not which one an ALTER sets.
    """
    level = values.get("cf_level")
    before = existing.values["cf_level"].value if "cf_level" in existing.values else DEFAULT_CF_LEVEL
    if command.type != "CFSTRUCT" or level is None or level.value < 5 or before >= 5 or not existing.defined:
        return {}
    return {} if "offload" in existing.values else {"offload": SourceValue("DB2", level.where)}


def _is_output(statement: Statement, *, is_first: bool) -> bool:
    """Return True for what DISPLAY answers: a message, or first of all an object without a verb: CFSTRUCT(APP1)."""
    verb, _ = first_words(statement)
    is_object = is_first and verb in OBJECTS and statement.text.lstrip(" \t,")[len(verb) :].lstrip().startswith("(")
    return is_object or (verb not in VERBS and _MESSAGE.search(statement.text) is not None)


def _command(statement: Statement) -> _Command | None:
    """Return the command, or None if it concerns no object of an estate."""
    verb, second = first_words(statement)
    verb = VERB_SYNONYMS.get(verb, verb)
    if verb == "COMMAND":
        return None  # of CSQUTIL: it names the data set of the commands that follow
    if verb not in VERBS:
        hint = did_you_mean(verb, VERBS) or "; does the line before lack a + or - at its end?"
        raise EstateError(f"{statement.locate()}: {verb or statement.text.strip()[:20]!r} is no MQSC command{hint}")
    if verb not in ("DEFINE", "ALTER", "DELETE") or second in SKIPPED_OBJECTS:
        return None
    operands = parameters(statement)[1:]
    known = {**{word: word for word in OBJECTS}, **OBJECT_SYNONYMS}
    subject = next((operand for operand in operands if operand.keyword in SKIPPED_OBJECTS.union(known)), None)
    if subject is None:
        hint = did_you_mean(second, known) or f"; {verb} needs an object like QLOCAL(NAME)"
        raise EstateError(f"{statement.locate()}: {verb} {second}: no MQSC object{hint}")
    if subject.keyword in SKIPPED_OBJECTS:
        return None
    kind = known[subject.keyword]
    words = OBJECTS[kind]
    if operands[0] is not subject and operands[0].keyword not in words.valid.union(words.read):
        hint = "; did you mean QLOCAL?" if second == "QUEUE" else did_you_mean(second, known)
        raise EstateError(f"{statement.locate()}: {verb} {second}: no MQSC object{hint}")
    name = convert(f"{subject.where}: {verb} {subject}", _single(subject), words.name).value
    options = {operand.keyword: operand for operand in operands if operand is not subject}
    return _Command(verb, kind, words, name, options, subject.where)


def _disposition(command: _Command) -> str:
    """Return QSGDISP, by default QMGR. A CFSTRUCT always belongs to the group, a page set to the queue manager."""
    if command.type in ("CFSTRUCT", "PSID"):
        return "SHARED" if command.type == "CFSTRUCT" else "QMGR"
    allowed = ["QMGR", "COPY", "GROUP"]
    if command.type == "QLOCAL":
        allowed.insert(0, "SHARED")
    if command.verb != "DEFINE":
        allowed.append("PRIVATE")
    disposition = command.option("QSGDISP") or "QMGR"
    if disposition not in allowed:
        raise EstateError(f"{command.where}: {command} QSGDISP({disposition}): must be one of {', '.join(allowed)}")
    return disposition


def _single(parameter: Parameter) -> str:
    """Return the value of a parameter without the blanks that pad names in MQ."""
    if parameter.values is None or len(parameter.values) != 1:
        raise EstateError(f"{parameter.where}: {parameter}: must have one value, like {parameter.keyword}(VALUE)")
    return parameter.values[0].text.rstrip(" ")
