"""CFRM policy text: input of the administrative data utility IXCMIAPU, or the output of its REPORT(YES).

A statement ends where the next one begins; /* comments */ may span lines. Columns 73 to 80 are skipped if they hold a
sequence number. JCL around the statements (lines that start with //, a line of only /*) and policies of other types
(DATA TYPE(SFM) ...) are skipped. From printed output the report is read, with the policies of the couple data set, or
without a report the control cards behind their line numbers; headings and messages are skipped. A couple data set holds
several policies, one of them active: D XCF,POLICY shows it. SCMMAXSIZE counts with SCMALGORITHM(KEYPRIORITY1), and the
coupling facility is the first of PREFLIST: docs/estate.md.

Sources:
    [IBM: z/OS MVS Setting Up a Sysplex, CFRM parameters for administrative data utility] (z/OS 2.5 syntax; sizes are
    `size[u]` with u = K, M, G or T, KB without one), [IBM: z/OS MVS Setting Up a Sysplex, Updating the CFRM policy]
    (defaults ALLOWAUTOALT(NO), FULLTHRESHOLD(80)).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from twin.base.listings import text_lines
from twin.base.units import format_size
from twin.estate.attributes import Reading
from twin.estate.errors import EstateError, Problems, did_you_mean
from twin.estate.model import Structure
from twin.estate.rows import SourceValue, Values, convert, size, text, word_set

_SEQUENCE = re.compile(r"(.{72})[0-9]{8}\s*")
_TOKEN = re.compile(r"[()]|[^\s,()]+")
_TITLE = re.compile(r"ADMINISTRATIVE DATA UTILITY: *(.{0,40}?) *PAGE +[0-9]")
_CARD = re.compile(r" *[0-9]{1,6}(?: |$)(.*)")  # a control card behind its line number
_MESSAGE = re.compile(r" *IXC[0-9]{3,4}[A-Z](?: |$)")
_STATEMENTS = frozenset(("DATA", "DEFINE", "DELETE", "CF", "STRUCTURE"))

_READ: Reading = {
    **{row.cfrm: (name, row.form.word) for name, row in Structure.rows.items() if row.cfrm and row.form.word},
    "MINSIZE": ("min_size", size(1, unit="K")),
    "SCMALGORITHM": ("scm_algorithm", text("KEYPRIORITY1", "KEYPRIORITY1, the only algorithm")),
}
_VALID = word_set(
    "NAME EXCLLIST REBUILDPERCENT DUPLEX RECPRTY SUBNOTIFYDELAY LISTNOTIFYDELAY KEYRNOTIFYDELAY ENFORCEORDER"
    " ALLOWREALLOCATE ENCRYPT"
)


@dataclass(frozen=True, slots=True)
class PolicyStructure:
    """STRUCTURE statement as checked attributes of the estate."""

    where: str  # file and line
    values: Values  # the attributes
    policy: str | None = None  # name of the policy; None: the text does not say
    preflist: tuple[str, ...] = ()  # coupling facilities, in the order in which one is chosen


@dataclass(slots=True)
class Policies:
    """Structures and coupling facilities of the CFRM texts of an estate by name, and warnings."""

    structures: dict[str, PolicyStructure] = field(default_factory=dict)
    coupling_facilities: dict[str, str] = field(default_factory=dict)  # name -> file and line
    dump_spaces: dict[str, SourceValue] = field(default_factory=dict)  # by coupling facility
    warnings: list[str] = field(default_factory=list)
    problems: Problems = field(default_factory=Problems)

    def read(self, text: str, file: str, policy: str | None = None, active: str | None = None) -> None:
        """Add the statements of a policy. Wrong values and names defined twice are collected in `problems`. `policy`:
        name of the one to take, None: the text has one; `active`: taken of several, None: not known. EstateError: wrong
        syntax, with file and line; no such policy, or several.
        """
        by_policy: dict[str | None, list[_Statement]] = {}
        in_cfrm, name = True, None
        for statement in _statements(text, file):
            if statement.verb == "DATA":
                in_cfrm, name = statement.first_word("TYPE") in ("", "CFRM"), None
            elif in_cfrm:
                if statement.verb == "DEFINE":
                    name = statement.first_word("NAME") or None
                by_policy.setdefault(name, []).append(statement)
        for chosen in _chosen(by_policy, file, policy, active):
            for statement in by_policy[chosen]:
                with self.problems.collect():
                    self._add(statement, chosen)

    def _add(self, statement: _Statement, policy: str | None) -> None:
        if statement.verb == "CF":
            self.coupling_facilities.setdefault(statement.name(), statement.where)
            words, where = statement.parameters.get("DUMPSPACE", ((), ""))
            if words:
                place = f"{where}: CF NAME({statement.name()}) DUMPSPACE({','.join(words)})"
                self.dump_spaces.setdefault(statement.name(), convert(place, words[0], size(0, unit="K")))
        elif statement.verb == "STRUCTURE":
            self._structure(statement, policy)

    def _structure(self, statement: _Statement, policy: str | None) -> None:
        name = statement.name()
        if name in self.structures:
            raise EstateError(
                f"{statement.where}: STRUCTURE NAME({name}) is defined already ({self.structures[name].where});"
                " keep the one of the active policy"
            )
        values: dict[str, SourceValue] = {}
        for keyword, (words, where) in statement.parameters.items():
            place = f"{where}: STRUCTURE NAME({name}) {keyword}({','.join(words)})"
            with self.problems.collect():
                self._read_parameter(keyword, words, place, values)
        preflist, _ = statement.parameters.get("PREFLIST", ((), ""))
        self.structures[name] = PolicyStructure(statement.where, self._with_scm(name, values), policy, preflist)

    def _read_parameter(self, keyword: str, words: tuple[str, ...], place: str, values: dict[str, SourceValue]) -> None:
        reading = _READ.get(keyword)
        if reading is None:
            self._not_read(keyword, place)
            return
        if not words or (len(words) > 1 and keyword != "PREFLIST"):
            raise EstateError(f"{place}: must have one value")
        values[reading[0]] = convert(place, words[0], reading[1])

    def _not_read(self, keyword: str, place: str) -> None:
        """Raise EstateError for a misspelling, else warn: a newer z/OS may have added the parameter."""
        if keyword in _VALID:
            return
        meant = did_you_mean(keyword, _READ, 0.7)
        if meant:
            raise EstateError(f"{place}: no such parameter{meant}")
        self.warnings.append(f"{place}: {keyword} is not known here and ignored")

    def _with_scm(self, name: str, values: dict[str, SourceValue]) -> dict[str, SourceValue]:
        """Drop SCMMAXSIZE unless SCMALGORITHM(KEYPRIORITY1) goes with it."""
        algorithm = values.pop("scm_algorithm", None)
        min_size = values.pop("min_size", None)
        for attribute, keyword in (("init_size", "INITSIZE"), ("size", "SIZE")):
            if min_size is not None and attribute in values and min_size.value > values[attribute].value:
                allocated = format_size(values[attribute].value)
                self.warnings.append(
                    f"{min_size.where}: above {keyword}({allocated}); it is the least that {name} may have"
                )
                break
        if algorithm is not None and "scm_max_size" not in values:
            self.warnings.append(f"{algorithm.where}: {name} uses no storage class memory without SCMMAXSIZE")
        scm = values.get("scm_max_size")
        if scm is not None and (algorithm is None or algorithm.value != "KEYPRIORITY1"):
            self.warnings.append(f"{scm.where}: {name} uses no storage class memory without SCMALGORITHM(KEYPRIORITY1)")
            del values["scm_max_size"]
        return values


@dataclass(slots=True)
class _Statement:
    """A statement of a policy. where: file and line of its verb."""

    verb: str
    where: str
    parameters: dict[str, tuple[tuple[str, ...], str]] = field(default_factory=dict)  # keyword -> words, file and line

    def first_word(self, keyword: str) -> str:
        """Return the first word in the parentheses of a keyword; empty if there is none."""
        words = self.parameters.get(keyword, ((), ""))[0]
        return words[0] if words else ""

    def name(self) -> str:
        """Return the name that the statement defines. EstateError: it has none."""
        name = self.first_word("NAME")
        if not name:
            raise EstateError(f"{self.where}: {self.verb} without a name; write {self.verb} NAME(...)")
        return name


def _chosen(
    by_policy: Mapping[str | None, list[_Statement]], file: str, policy: str | None, active: str | None
) -> list[str | None]:
    """Return the names of the policies to take, None for statements without one. EstateError: which is not known."""
    named = {name: own for name, own in by_policy.items() if name and any(s.verb in ("CF", "STRUCTURE") for s in own)}
    places = ", ".join(f"{name} ({own[0].where.removeprefix(file).lstrip(':')})" for name, own in named.items())
    if policy is not None and policy not in named:
        raise EstateError(f"{file}: no policy {policy}; expected: one of {places or 'none, as it names no policy'}")
    if policy is None and len(named) > 1:
        if active not in named:
            raise EstateError(
                f"{file}: {len(named)} policies by line: {places}; expected: the name of the active one, which"
                f' D XCF,POLICY shows: cfrm:NAME=FILE, or policy = "NAME" in [[import]]'
            )
        policy = active
    return [name for name in by_policy if name is None or policy is None or name == policy]


def _statements(text: str, file: str) -> Iterator[_Statement]:
    statement: _Statement | None = None
    tokens = _tokens(text, file)
    token = next(tokens, None)
    while token is not None:
        word, line = token
        where = f"{file}:{line}"
        token = next(tokens, None)
        if word in _STATEMENTS:
            if statement is not None:
                yield statement
            statement = _Statement(word, where)
            continue
        if statement is None or word in "()":
            hint = (
                did_you_mean(word, _STATEMENTS) or "; a policy starts with DATA TYPE(CFRM) or DEFINE POLICY NAME(...)"
            )
            raise EstateError(f"{where}: {word} where a statement must be{hint}")
        words: list[str] = []
        if token is not None and token[0] == "(":
            while (token := next(tokens, None)) is not None and token[0] not in "()":
                words.append(token[0])
            if token is None or token[0] == "(":
                raise EstateError(f"{where}: {word}( has no closing parenthesis")
            token = next(tokens, None)
        if word in statement.parameters and statement.verb in ("CF", "STRUCTURE"):
            raise EstateError(f"{where}: {word} is repeated in this {statement.verb} statement; give it once")
        statement.parameters[word] = (tuple(words), where)
    if statement is not None:
        yield statement


def _tokens(text: str, file: str) -> Iterator[tuple[str, int]]:
    """Yield words and parentheses in upper case, with their line numbers."""
    for number, line in _without_comments(text, file):
        for match in _TOKEN.finditer(line):
            yield match[0].upper(), number


def _cards(text: str) -> Iterator[tuple[int, str]]:
    """Yield the lines with statements, and their numbers: of a print those of its report, else its control cards."""
    lines = list(text_lines(text))
    titles = [match[1] for line in lines if (match := _TITLE.search(line.text))]
    has_report = any("REPORT" in title for title in titles)
    page = None
    for line in lines:
        title = _TITLE.search(line.text)
        if title is not None:
            page = title[1]
        elif not titles:
            if not (line.is_heading and line.has_control):
                yield line.number, line.text
        elif page is None or line.is_heading or _MESSAGE.match(line.text) or ("REPORT" in page) != has_report:
            continue
        elif has_report:
            yield line.number, line.text
        elif (card := _CARD.match(line.text)) is not None:
            yield line.number, card[1]


def _without_comments(text: str, file: str) -> Iterator[tuple[int, str]]:
    opened = 0  # line where the current comment starts
    jcl = False
    for number, raw in _cards(text):
        line = raw
        sequence = _SEQUENCE.fullmatch(line)
        line = sequence[1] if sequence else line
        if not opened and line.startswith("//"):
            jcl = True
            continue
        if not opened and jcl and line.rstrip() == "/*":
            continue
        parts: list[str] = []
        start = 0
        while start < len(line):
            mark = line.find("*/" if opened else "/*", start)
            end = len(line) if mark < 0 else mark
            if not opened:
                parts.append(line[start:end])
            if mark >= 0:
                opened = 0 if opened else number
            start = end + 2
        yield number, " ".join(parts)
    if opened:
        raise EstateError(f"{file}:{opened}: the comment /* has no end; close it with */")
