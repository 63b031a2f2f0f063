"""The rules of language that a machine can check, over all Python and Markdown of the repository.

`python tests/language.py` prints the offences, as `make lint` does; `python tests/language.py twin` those of a folder.
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = ("kernels", "twin", "streams", "deploy", "mqtwin", "tests", "docs", ".")
PACKAGES = ("kernels", "twin", "streams", "deploy", "mqtwin", "tests", "docs")
THIS = Path(__file__).resolve()  # its patterns are what it looks for

# Words that say nothing about what they name.
BANNED_NAMES = {"at", "found", "given", "kept", "made", "most", "now_and_then", "of"}
BANNED_NAMES |= {"one", "said", "shown", "taken", "then", "told", "wanted"}
BANNED_CLASSES = {"held", "told", "given", "kept", "found", "made", "taken", "shown", "wanted"}

FIRST_WORDS = re.compile(r"(?:What|Whether|As)\s")
DEAD_SOURCES = re.compile(r"contract(?:\.md|,? sections?)\b|\bdomain\.md\b|\bseed:? [\w-]+\.txt", re.IGNORECASE)
DEAD_TAGS = re.compile(r"\[(?:seed|param|fit|pub)\b[^\]\n]*\]")

SECTION = re.compile(r"(?:Args|Attributes|Raises|Returns|Sources?|Tags|Yields|Example|Examples|Usage):$")

PHRASES = re.compile(
    r"\bso many\b|(?<!as )\bof then\b|\bis there for\b|\basked again\b|\bits like\b|\bturns the question round\b"
    r"|\bforetell\w*|\bforetold\b|\bfor want of\b|\bgoes on\b|\bwent on\b|\btells?\b"
    r"|\bboth speak\b|\bhave brought\b|\bcalls? (?:somebody|anybody)\b|\bneeds somebody\b|\btold from the others\b",
    re.IGNORECASE,
)

# A page, a file or a dotted name of this repository, as docstrings and comments mention them.
PAGE = re.compile(r"(?<![\w./-])((?:docs/)?[\w-]+\.md)(?:#([\w-]+))?")
FILE = re.compile(rf"(?<![\w./-])((?:{'|'.join(PACKAGES)}|schemas)/[\w./-]*\w\.(?:py|toml|jsonl?|svg|ini|service))")
DOTTED = re.compile(rf"`((?:{'|'.join(PACKAGES)})(?:\.[A-Za-z_]\w*)+)`")
NOT_OURS = {"CONFIGURATION.md", "contract.md", "domain.md"}  # of librdkafka; dead sources, a rule of their own
LINK = re.compile(r"(?<!!)\[(?:[^\]\n]|\n(?!\n))*\]\(([^)\s]+)\)|!\[[^\]]*\]\(([^)\s]+)\)")


@dataclass(frozen=True, order=True)
class Offence:
    """A place and what is wrong there."""

    path: str
    line: int
    text: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.text}"


@dataclass(frozen=True)
class Source:
    """A parsed Python file: its tree, and its comments by line."""

    path: Path
    tree: ast.Module
    comments: tuple[tuple[int, str], ...]

    @property
    def name(self) -> str:
        return self.path.relative_to(ROOT).as_posix()

    @cached_property
    def docstrings(self) -> tuple[tuple[int, str], ...]:
        """The line and the text of each docstring, those of constants and fields included."""
        texts = []
        for node in ast.walk(self.tree):
            for statement in getattr(node, "body", []) if not isinstance(node, ast.Lambda | ast.IfExp) else []:
                match statement:
                    case ast.Expr(value=ast.Constant(value=str(text))):
                        texts.append((statement.lineno, text))
        return tuple(texts)

    def texts(self) -> Iterator[tuple[int, str]]:
        """Yield the line and the text of each string of the code."""
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield node.lineno, node.value

    def prose(self) -> Iterator[tuple[int, str]]:
        """Yield each line of a docstring or comment with its number."""
        yield from self.comments
        for first, text in self.docstrings:
            yield from enumerate(text.splitlines(), first)


def files(folder: str, suffix: str) -> list[Path]:
    """Return the files of a folder with that suffix; of ".", those directly in the root."""
    found_in = (ROOT / folder).glob(f"*{suffix}") if folder == "." else (ROOT / folder).rglob(f"*{suffix}")
    return sorted(path for path in found_in if path != THIS and "__pycache__" not in path.parts)


@cache
def sources(folder: str) -> tuple[Source, ...]:
    """Return the parsed Python files of a folder."""
    parsed = []
    for path in files(folder, ".py"):
        text = path.read_text(encoding="utf-8")
        tokens = tokenize.generate_tokens(io.StringIO(text).readline)
        comments = tuple((token.start[0], token.string) for token in tokens if token.type == tokenize.COMMENT)
        parsed.append(Source(path, ast.parse(text), comments))
    return tuple(parsed)


@cache
def pages(folder: str) -> tuple[tuple[Path, str], ...]:
    """Return the Markdown files of a folder, with their texts."""
    return tuple((path, path.read_text(encoding="utf-8")) for path in files(folder, ".md"))


def line_of(text: str, position: int) -> int:
    return text.count("\n", 0, position) + 1


# --- the rules -------------------------------------------------------------------------------------------------------


def first_words(folder: str) -> Iterator[Offence]:
    """Yield docstrings that begin like a subordinate clause."""
    for source in sources(folder):
        for line, text in source.docstrings:
            if FIRST_WORDS.match(text.lstrip()):
                yield Offence(source.name, line, text.lstrip().partition("\n")[0])


def explained_names(node: ast.AST) -> set[str]:
    """Return the names that the docstring of a function or class may explain: its arguments or its fields."""
    match node:
        case ast.FunctionDef(args=args) | ast.AsyncFunctionDef(args=args):
            return {arg.arg for arg in (*args.posonlyargs, *args.args, *args.kwonlyargs)}
        case ast.ClassDef(body=body):
            fields = {name for field in body for name in bound_fields(field)}
            return fields.union(*(explained_names(method) for method in body if is_init(method)))
        case _:
            return set()


def bound_fields(statement: ast.stmt) -> set[str]:
    match statement:
        case ast.AnnAssign(target=ast.Name(id=name)):
            return {name}
        case _:
            return set()


def is_init(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.FunctionDef) and statement.name == "__init__"


def argument_nouns(folder: str) -> Iterator[Offence]:
    """Yield arguments and fields that a docstring explains without a noun: "slope: of the rise"."""
    if folder == "kernels":
        return  # a changed docstring compiles all of them again
    for source in sources(folder):
        for node in ast.walk(source.tree):
            names = explained_names(node)
            if not names or not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                continue
            text = ast.get_docstring(node, clean=False) or ""
            for match in re.finditer(rf"(?<![\w.])(?:{'|'.join(sorted(names))}): of\b[^\n]*", text):
                yield Offence(source.name, node.body[0].lineno + text.count("\n", 0, match.start()), match[0])


def bound_names(tree: ast.Module) -> Iterator[tuple[int, str, bool]]:
    """Yield (line, name, whether it is a class) for each name that a module binds, in whatever way."""
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
                yield node.lineno, name, False
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.arg(arg=name):
                yield node.lineno, name, False
            case ast.ClassDef(name=name):
                yield node.lineno, name, True
            case ast.alias(asname=str(name)) | ast.ExceptHandler(name=str(name)):
                yield node.lineno, name, False
            case ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                yield node.lineno, name, False
            case _:
                pass


def identifiers(folder: str) -> Iterator[Offence]:
    """Yield names that say nothing about what they hold: of modules, classes, functions, parameters, variables."""
    for source in sources(folder):
        if source.path.stem in BANNED_NAMES:
            yield Offence(source.name, 1, f"module {source.path.stem}")
        for line, name, is_class in bound_names(source.tree):
            if name.strip("_").lower() in (BANNED_CLASSES if is_class else BANNED_NAMES):
                yield Offence(source.name, line, name)


def prose(folder: str) -> Iterator[tuple[str, int, str]]:
    """Yield (path, number, line) of all prose in a folder: pages, docstrings, comments, and texts of the commands."""
    lines = [(path.relative_to(ROOT).as_posix(), enumerate(text.splitlines(), 1)) for path, text in pages(folder)]
    lines += [(source.name, source.prose()) for source in sources(folder)]
    lines += [(source.name, source.texts()) for source in sources(folder) if folder == "deploy"]
    for name, numbered in lines:
        for line, text in numbered:
            yield name, line, text


def dead_sources(folder: str) -> Iterator[Offence]:
    """Yield sources that no reader of this repository can look up."""
    for name, line, text in prose(folder):
        for dead in (*DEAD_SOURCES.finditer(text), *DEAD_TAGS.finditer(text)):
            yield Offence(name, line, dead[0])


def phrases(folder: str) -> Iterator[Offence]:
    """Yield phrases of a dialect that the field does not speak."""
    for name, line, text in prose(folder):
        for phrase in PHRASES.finditer(text):
            yield Offence(name, line, phrase[0])


def long_docstrings(folder: str) -> Iterator[Offence]:
    """Yield docstrings of more than two paragraphs of prose; sections, lists, tables and code do not count."""
    for source in sources(folder):
        for line, text in source.docstrings:
            paragraphs = re.split(r"\n\s*\n", text.strip())
            if sum(is_prose(paragraph) for paragraph in paragraphs) > 2:
                yield Offence(source.name, line, text.strip().partition("\n")[0])


def is_prose(paragraph: str) -> bool:
    """Return True for a paragraph of sentences: not indented code, and no section, list or table."""
    lines = [line.strip() for line in paragraph.strip("\n").splitlines()]
    return not (
        SECTION.match(lines[0])
        or lines[0].startswith(("- ", "* ", "|", "===", "1. ", ">>> "))
        or paragraph.startswith("        ")
    )


def slug(heading: str) -> str:
    """Return the anchor of a heading, as the site makes it."""
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
    return re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", text).strip().lower())


@cache
def anchors(path: Path) -> frozenset[str]:
    """Return what a page can be linked to at: its headings, and the anchors it sets itself."""
    text = re.sub(r"^```.*?^```", "", path.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    headings = re.findall(r"^#+ (.*?)(?: *\{[^}]*\})?$", text, re.MULTILINE)
    named = re.findall(r"\{[^}]*#([\w-]+)[^}]*\}", text) + re.findall(r"\bid=\"([\w-]+)\"", text)
    return frozenset([*map(slug, headings), *named])


def broken(path: Path, anchor: str | None) -> str | None:
    """Return what is wrong with a link to a file and an anchor in it."""
    if not path.exists():
        return "there is no such file"
    if anchor and path.suffix == ".md" and anchor not in anchors(path):
        return f"it has no anchor {anchor}"
    return None


def links(folder: str) -> Iterator[Offence]:
    """Yield links of Markdown files that lead nowhere: relative ones, with their anchors."""
    for path, text in pages(folder):
        name = path.relative_to(ROOT).as_posix()
        plain = re.sub(r"^```.*?^```", lambda code: "\n" * code[0].count("\n"), text, flags=re.MULTILINE | re.DOTALL)
        for link in LINK.finditer(re.sub(r"`[^`\n]*`", lambda code: "`" * len(code[0]), plain)):
            target = link[1] or link[2]
            if re.match(r"[a-z]+:", target):
                continue
            page, _, anchor = target.partition("#")
            wrong = broken(path.parent / page if page else path, anchor)
            if wrong:
                yield Offence(name, line_of(plain, link.start()), f"{target}: {wrong}")


@cache
def module_file(parts: tuple[str, ...]) -> Path | None:
    """Return the file of a module, or the folder of a package without `__init__`; None if there is none."""
    path = ROOT.joinpath(*parts)
    for candidate in (path.with_suffix(".py"), path / "__init__.py", path):
        if candidate.exists():
            return candidate
    return None


@cache
def names_in(path: Path) -> frozenset[str]:
    """Return the names that a module has at its top level, and those of its classes as "Class.name"."""
    if path.is_dir():
        return frozenset()
    tree = ast.parse(path.read_text(encoding="utf-8"))
    names = {name for _, name, _ in bound_names(tree)}
    names |= {alias.name for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) for alias in node.names}
    names |= {  # the lazy names of a table of contents
        node.value for node in ast.walk(tree) if path.stem == "__init__" and isinstance(node, ast.Constant)
        if isinstance(node.value, str)
    }  # fmt: skip
    return frozenset(names)


def dotted_is_there(dotted: str) -> bool:
    """Return True if a dotted name stands for a module, or for a name that its module binds."""
    parts = tuple(dotted.split("."))
    for end in range(len(parts), 0, -1):
        path = module_file(parts[:end])
        if path is not None:
            return end == len(parts) or parts[end] in names_in(path)
    return False


_OF_A_CHECKPOINT = {"mqtwin.json", "mqtwin.lock", "mqtwin.lease"}  # files, not names of the package


def mentions(folder: str) -> Iterator[Offence]:
    """Yield pages, files and dotted names that docstrings and comments mention and that are not there."""
    for source in sources(folder):
        for line, text in source.prose():
            for page in PAGE.finditer(text):
                path = ROOT / page[1]
                wrong = broken(path if path.exists() else ROOT / "docs" / page[1], page[2])
                if wrong and page[1] not in NOT_OURS:
                    yield Offence(source.name, line, f"{page[0]}: {wrong}")
            for file in FILE.finditer(text):
                if not (ROOT / file[1]).exists():
                    yield Offence(source.name, line, f"{file[1]}: there is no such file")
            for dotted in DOTTED.finditer(text):
                if dotted[1] not in _OF_A_CHECKPOINT and not dotted_is_there(dotted[1]):
                    yield Offence(source.name, line, f"{dotted[1]}: there is no such name")


RULES: dict[str, Callable[[str], Iterator[Offence]]] = {
    "first words": first_words,
    "identifiers": identifiers,
    "dead sources": dead_sources,
    "phrases": phrases,
    "long docstrings": long_docstrings,
    "argument nouns": argument_nouns,
    "links": links,
    "mentions": mentions,
}


def main(folders: Sequence[str]) -> int:
    """Print the offences of folders, all by default; return 1 if there are any."""
    offences = {
        f"{offence}  [{rule}]"
        for folder in folders or FOLDERS
        for rule, check in RULES.items()
        for offence in check(folder)
    }
    for line in sorted(offences):
        print(line)
    return 1 if offences else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
