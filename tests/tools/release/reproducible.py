"""Two builds of wheel and source archive, from copies of this tree in other places, and what differs between them.

`python -m tests.tools.release.reproducible` prints a line for each difference and ends with 1 if there is one. The
second copy has other times and rights of files than the first, and its wheel is built from its source archive.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]


def build(source: Path, into: Path, *targets: str, **environment: str) -> None:
    """Build with hatchling, as `make wheel` does.

    Args:
        source: root of the tree.
        into: folder of what is built.
        targets: `sdist`, `wheel` or both.
        environment: variables besides those of this process.

    Raises:
        subprocess.CalledProcessError: the build failed.
    """
    command = [sys.executable, "-m", "hatchling", "build", "-d", str(into)]
    command += [part for target in targets for part in ("-t", target)]
    quiet = {"HATCH_QUIET": "1"}  # errors only
    subprocess.run(command, cwd=source, env={**os.environ, **quiet, **environment}, check=True)


def copy_tree(folder: Path) -> Path:
    """Copy the files of this tree that git knows or would add, and return the folder."""
    listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(listed, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    for name in filter(None, names.split("\0")):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, folder / name)
    return folder


def build_twice(folder: Path) -> tuple[Path, Path]:
    """Build in two ways that should not matter, and return the folders of the two results.

    Args:
        folder: an empty one.
    """
    epoch = {"SOURCE_DATE_EPOCH": "1790000000"}
    first, second = folder / "first", folder / "second"
    build(copy_tree(folder / "tree"), first, "sdist", "wheel", **epoch, TZ="UTC", PYTHONHASHSEED="1")
    tree = copy_tree(folder / "elsewhere" / "tree")
    for file in filter(Path.is_file, tree.rglob("*")):
        file.chmod(0o600)
        os.utime(file, (1, 1))
    other = {**epoch, "TZ": "Asia/Tokyo", "PYTHONHASHSEED": "2"}
    build(tree, second, "sdist", **other)
    with tarfile.open(next(second.glob("*.tar.gz"))) as archive:
        archive.extractall(folder / "unpacked", filter="data")
    build(next((folder / "unpacked").iterdir()), second, "wheel", **other)
    return first, second


def differences(first: Path, second: Path) -> Iterator[str]:
    """Yield a line for each difference between two folders of archives: by member where the members say it."""
    names = sorted({file.name for folder in (first, second) for file in folder.iterdir()})
    for name in names:
        absent = [folder for folder in (first, second) if not (folder / name).is_file()]
        if absent:
            yield f"{name}: not in {absent[0].name}"
        elif (first / name).read_bytes() != (second / name).read_bytes():
            ours, theirs = members(first / name), members(second / name)
            differing = [member for member in sorted({*ours, *theirs}) if ours.get(member) != theirs.get(member)]
            yield from (f"{name}: {member}" for member in differing or ["order, compression or times of its members"])


def members(archive: Path) -> dict[str, tuple[int, bytes]]:
    """Return rights and content of each file in a wheel or source archive, by its path."""
    if archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as wheel:
            return {file.filename: (file.external_attr >> 16, wheel.read(file)) for file in wheel.infolist()}
    with tarfile.open(archive) as sources:
        opened = ((file, sources.extractfile(file)) for file in sources.getmembers())
        return {file.name: (file.mode, stream.read()) for file, stream in opened if stream is not None}


def main() -> int:
    """Return the exit status: 0 no difference, 1 a difference."""
    with tempfile.TemporaryDirectory() as folder:
        first, second = build_twice(Path(folder))
        differing = list(differences(first, second))
        print("\n".join(differing or [f"{file.name}: the same bytes twice" for file in sorted(first.iterdir())]))
    return bool(differing)


if __name__ == "__main__":
    sys.exit(main())
