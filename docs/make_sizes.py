"""`python -m docs.make_sizes`: bytes of each package, fetched and on disk, for docs/libraries.md and the quick start.

It fetches what an installation with every extra fetches, 700 MB, in the versions of the environment that it runs in,
which also says what is on disk. Packages that need a compiler or a build are counted as their archives.
"""

from __future__ import annotations

import importlib.metadata
import re
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterable
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name, parse_sdist_filename, parse_wheel_filename

from docs.passages import Passage

ROOT = Path(__file__).parents[1]
LIBRARIES, QUICK_START = ROOT / "docs" / "libraries.md", ROOT / "docs" / "quick-start.md"
OWN = "mqtwin"
SETS = {".": OWN, ".[stream]": f"{OWN}[stream]", ".[all]": f"{OWN}[all]"}  # each has all of the one before
BEGIN = "<!-- sizes: begin, by python -m docs.make_sizes -->"
MIN_BYTES = 2_000_000  # on disk, of a package with a row of its own
_TOTALS = {
    ".": "the base",
    ".[stream]": "all that was required before",
    ".[all]": "with every extra",
}


def packages(requirement: str) -> set[str]:
    """Return the names of all that a requirement brings, by the metadata of this environment."""
    names: set[tuple[str, str]] = set()
    todo = [Requirement(requirement)]
    while todo:
        needed = todo.pop()
        name = canonicalize_name(needed.name)
        for extra in {"", *needed.extras}:
            if (name, extra) not in names:
                names.add((name, extra))
                others = map(Requirement, importlib.metadata.requires(name) or ())
                todo += [own for own in others if own.marker is None or own.marker.evaluate({"extra": extra})]
    return {name for name, _ in names}


def measure(names: Iterable[str]) -> dict[str, tuple[int, int]]:
    """Return the bytes of the archive that pip fetches of each package, and those of its files; of mqtwin its wheel."""
    pinned = [f"{name}=={importlib.metadata.version(name)}" for name in names if name != OWN]
    with tempfile.TemporaryDirectory() as folder:
        build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder]
        subprocess.run(build, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
        download = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "-d", folder]
        subprocess.run([*download, "--build-constraint", "constraints.txt", *pinned], cwd=ROOT, check=True)
        return {_name(path): (path.stat().st_size, _on_disk(path)) for path in Path(folder).iterdir()}


def _name(archive: Path) -> str:
    parse = parse_wheel_filename if archive.suffix == ".whl" else parse_sdist_filename
    return str(parse(archive.name)[0])


def _on_disk(archive: Path) -> int:
    name = _name(archive)
    if name == OWN:  # this environment has a link to the checkout
        with zipfile.ZipFile(archive) as wheel:
            return sum(member.file_size for member in wheel.infolist())
    paths = [Path(str(file.locate())) for file in importlib.metadata.files(name) or ()]
    return sum(path.stat().st_size for path in paths if path.is_file())


def passages() -> list[Passage]:
    """Return the table of libraries.md, and the sums of the quick start."""
    members = {extras: packages(requirement) for extras, requirement in SETS.items()}
    sizes = measure(set().union(*members.values()))
    lines = ["| package | part of | fetched | on disk |", "| --- | --- | ---: | ---: |"]
    sums, before = [], set[str]()
    for extras, names in members.items():
        own = sorted(names - before, key=lambda name: -sizes[name][1])
        large = [name for name in own if sizes[name][1] >= MIN_BYTES]
        small = own[len(large) :]
        lines += [_row(f"`{name}`", extras, [sizes[name]]) for name in large]
        lines += [_row(f"{len(small)} others", extras, [sizes[name] for name in small])] if small else []
        sums.append(_row(f"**all of `{extras}`**", _TOTALS[extras], [sizes[name] for name in names]))
        before |= names
    quick = [
        Passage(QUICK_START, rf"^\| `{re.escape(extras)}` \|[^|]*\| ([^|]* \| [^|]*) \|$", row.split(" | ", 2)[2][:-2])
        for extras, row in zip(members, sums, strict=True)
    ]
    return [Passage(LIBRARIES, rf"{re.escape(BEGIN)}\n(.*?)\n<!-- sizes: end -->", "\n".join([*lines, *sums])), *quick]


def _row(name: str, part: str, sizes: Iterable[tuple[int, int]]) -> str:
    fetched, on_disk = map(sum, zip(*sizes, strict=True))
    label = f"`{part}`" if part in SETS else part
    return f"| {name} | {label} | {_megabytes(fetched)} | {_megabytes(on_disk)} |"


def _megabytes(size: int) -> str:
    return f"{size / 1e6:,.0f} MB" if size >= 9.5e6 else f"{size / 1e6:.1f} MB"


def main() -> None:
    """Write the passages."""
    for passage in passages():
        passage.write()


if __name__ == "__main__":
    main()
