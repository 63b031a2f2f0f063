"""The artifacts of a release: wheel, source archive, bill of materials."""

from __future__ import annotations

import email
import importlib.metadata
import json
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from email.message import Message
from pathlib import Path
from typing import Any

import pytest
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from packaging.licenses import canonicalize_license_expression
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

from deploy.commands.doctor import PYTHONS
from deploy.java.jars import cache_dir
from tests.support.traffic import lines_of, traffic, write_estate, write_lines
from tests.tools.release.reproducible import build_twice, differences
from twin.base.installed import PACKAGES
from twin.estate import load_estate
from twin.playback.replays import replay

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
VERSION = PROJECT["version"]
# How metadata name licences without an expression, and how an expression of the licence begins.
LICENCES = {
    "3-Clause BSD License": "BSD-3-Clause",
    "Apache Software License": "Apache-2.0",
    "BSD License": "BSD-",
    "GNU General Public License v2 (GPLv2)": "GPL-2.0-only",
    "MIT License": "MIT",
    "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
    "Python Software Foundation License": "PSF-2.0",
}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The folders of two builds."""
    return build_twice(tmp_path_factory.mktemp("built"))


@pytest.fixture(scope="module")
def wheel(built: tuple[Path, Path]) -> Path:
    return built[0] / f"mqtwin-{VERSION}-py3-none-any.whl"


def in_wheel(wheel: Path, name: str) -> str:
    with zipfile.ZipFile(wheel) as archive:
        return archive.read(f"mqtwin-{VERSION}.dist-info/{name}").decode()


@pytest.fixture(scope="module")
def metadata(wheel: Path) -> Message:
    return email.message_from_string(in_wheel(wheel, "METADATA"))


@pytest.fixture(scope="module")
def bill(wheel: Path) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads(in_wheel(wheel, "sboms/mqtwin.cdx.json"))
    return loaded


def files_of_the_packages() -> set[str]:
    listed = ["git", "ls-files", "--cached", "--others", "--exclude-standard", *PACKAGES, "mqtwin"]
    names = subprocess.run(listed, cwd=ROOT, check=True, capture_output=True, text=True).stdout.split()
    return {name for name in names if (ROOT / name).is_file()}


def pins_below(heading: str) -> dict[str, str]:
    """Return the pins of constraints.txt below the comment that begins so, by normalised name."""
    sections = re.split(r"^# ", (ROOT / "constraints.txt").read_text(encoding="utf-8"), flags=re.MULTILINE)
    [section] = [section for section in sections if section.startswith(heading)]
    pins = [line.split("==") for line in section.splitlines()[1:] if line]
    return {canonicalize_name(name): version for name, version in pins}


def required(extras: set[str]) -> set[str]:
    """Return what the installed mqtwin requires on this machine, directly or not, by normalised name."""
    names: set[str] = set()
    waiting = [("mqtwin", extras)]
    while waiting:
        name, wanted_extras = waiting.pop()
        for requirement in map(Requirement, importlib.metadata.requires(name) or ()):
            marker = requirement.marker
            applies = marker is None or any(marker.evaluate({"extra": extra}) for extra in ("", *wanted_extras))
            needed = canonicalize_name(requirement.name)
            if applies and needed not in names:
                names.add(needed)
                waiting.append((needed, requirement.extras))
    return names


def test_two_builds_have_the_same_bytes(built: tuple[Path, Path]) -> None:
    assert list(differences(*built)) == []
    assert {file.name for file in built[0].iterdir()} == {
        f"mqtwin-{VERSION}-py3-none-any.whl",
        f"mqtwin-{VERSION}.tar.gz",
    }


def test_a_build_that_differs_is_named_by_archive_and_file(tmp_path: Path) -> None:
    for folder, content, moment in (("first", "1", 2020), ("second", "2", 2020), ("third", "1", 2021)):
        (tmp_path / folder).mkdir()
        with zipfile.ZipFile(tmp_path / folder / "a.whl", "w") as archive:
            archive.writestr(zipfile.ZipInfo("same.py", (moment, 1, 1, 0, 0, 0)), "0")
            archive.writestr(zipfile.ZipInfo("other.py", (moment, 1, 1, 0, 0, 0)), content)
    assert list(differences(tmp_path / "first", tmp_path / "second")) == ["a.whl: other.py"]
    assert list(differences(tmp_path / "first", tmp_path / "third")) == [
        "a.whl: order, compression or times of its members"
    ]
    (tmp_path / "third" / "b.whl").write_bytes(b"")
    assert list(differences(tmp_path / "third", tmp_path / "third")) == []
    assert list(differences(tmp_path / "first", tmp_path / "third"))[1:] == ["b.whl: not in first"]


def test_the_wheel_has_each_file_of_the_packages_and_what_describes_them(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    about = {"METADATA", "WHEEL", "RECORD", "entry_points.txt", "licenses/LICENSE", "sboms/mqtwin.cdx.json"}
    own = {f"mqtwin-{VERSION}.dist-info/{name}" for name in about}
    own |= {f"deploy/ask/documentation/{page.name}" for page in (ROOT / "docs").glob("*.md")}
    assert names == files_of_the_packages() | own


def test_the_source_archive_has_what_the_wheel_is_built_of_and_no_more(built: tuple[Path, Path]) -> None:
    with tarfile.open(built[0] / f"mqtwin-{VERSION}.tar.gz") as archive:
        names = {member.name.removeprefix(f"mqtwin-{VERSION}/") for member in archive.getmembers()}
    described = {"pyproject.toml", "hatch_build.py", "constraints.txt", "README.md", "CHANGELOG.md", "LICENSE"}
    described |= {f"docs/{page.name}" for page in (ROOT / "docs").glob("*.md")}
    assert names == files_of_the_packages() | described | {"PKG-INFO", ".gitignore"}  # hatchling's


def test_the_bill_of_materials_keeps_the_schema_of_cyclonedx(wheel: Path) -> None:
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(in_wheel(wheel, "sboms/mqtwin.cdx.json")) is None


def test_the_bill_lists_each_package_that_mqtwin_requires_in_its_tested_version(bill: dict[str, Any]) -> None:
    packages = [part for part in bill["components"] if part["purl"].startswith("pkg:pypi/")]
    listed = {part["name"]: (part["version"], part["scope"]) for part in packages}
    assert {name for name, (_, scope) in listed.items() if scope == "required"} == required(set())
    assert set(listed) == required({"all", "java", "mcp", "oidc", "pictures", "stream"})
    runs, extras = pins_below("What mqtwin runs on"), pins_below("What its extras add")
    assert {name: version for name, (version, _) in listed.items()} == runs | extras


def test_the_bill_lists_each_jar_with_its_sum(bill: dict[str, Any]) -> None:
    jars = [part for part in bill["components"] if part["purl"].startswith("pkg:maven/")]
    listed = {f"{jar['group']}:{jar['name']}:{jar['version']}": jar["hashes"][0]["content"] for jar in jars}
    lock = tomllib.loads((ROOT / "deploy" / "java" / "jars.lock.toml").read_text(encoding="utf-8"))
    assert listed == {coordinate: sha256 for jars in lock.values() for coordinate, sha256 in jars.items()}


def test_the_bill_names_the_licence_of_each_component(bill: dict[str, Any]) -> None:
    for part in bill["components"]:
        [licence] = part["licenses"]
        assert canonicalize_license_expression(licence["expression"]) == licence["expression"], part["purl"]


def test_licences_in_the_bill_are_those_that_packages_state(bill: dict[str, Any]) -> None:
    """By an expression, or else by a classifier or a name, which may leave open which BSD it is."""
    packages = {part["name"]: part for part in bill["components"] if part["purl"].startswith("pkg:pypi/")}
    for name, package in packages.items():
        stated = importlib.metadata.metadata(name)
        classified = [c.rpartition(" :: ")[2] for c in stated.get_all("Classifier", []) if c.startswith("License ::")]
        licence = stated["License-Expression"] or (classified or [stated["License"]])[0]
        assert package["licenses"][0]["expression"].startswith(LICENCES.get(licence, licence)), name


def test_the_bill_is_of_this_wheel_and_its_dependencies(bill: dict[str, Any]) -> None:
    assert bill["metadata"]["component"]["purl"] == f"pkg:pypi/mqtwin@{VERSION}"
    assert bill["metadata"]["component"]["supplier"] == PROJECT["authors"][0]
    [depends] = bill["dependencies"]
    assert depends["ref"] == bill["metadata"]["component"]["bom-ref"]
    direct = {canonicalize_name(Requirement(text).name) for text in PROJECT["dependencies"]}
    needed = {ref.removeprefix("pkg:pypi/").partition("@")[0] for ref in depends["dependsOn"] if ref[:8] == "pkg:pypi"}
    assert needed == direct


def test_the_metadata_names_the_pythons_that_are_supported(metadata: Message) -> None:
    first, first_unsupported = PYTHONS
    supported = SpecifierSet(metadata["Requires-Python"])
    minors = [f"3.{minor}" for minor in range(first[1] - 1, first_unsupported[1] + 1)]
    named = [c.rpartition(" ")[2] for c in metadata.get_all("Classifier", []) if "Python :: 3." in c]
    assert named == [minor for minor in minors if minor in supported] == minors[1:-1]


def test_the_metadata_has_license_extras_and_description(metadata: Message) -> None:
    assert metadata["License-Expression"] == "Apache-2.0"
    assert metadata.get_all("Provides-Extra") == ["all", "java", "mcp", "oidc", "pictures", "stream"]
    assert metadata["Description-Content-Type"] == "text/markdown"
    libraries = (ROOT / "docs" / "libraries.md").read_text(encoding="utf-8")
    assert all(f"`mqtwin[{extra}]`" in libraries for extra in metadata.get_all("Provides-Extra", []))


@pytest.mark.nightly
def test_the_wheel_runs_in_an_environment_of_its_own(wheel: Path, tmp_path: Path) -> None:
    """Its dependencies are those of this environment, its machine code is this user's: neither is in the wheel."""
    home, environment = tmp_path / "home", tmp_path / "environment"
    home.mkdir()
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(environment)], check=True)
    install = ["install", "--quiet", "--no-deps", "--no-index", str(wheel)]
    subprocess.run([sys.executable, "-m", "pip", "--python", str(environment), *install], check=True)
    [site] = environment.glob("lib/python*/site-packages")
    others = [path for path in sys.path if Path(path).name == "site-packages"]
    (site / "others.pth").write_text("\n".join(others), encoding="utf-8")
    blank = {"HOME": str(home), "PATH": "/usr/bin:/bin", "MQTWIN_CACHE": str(cache_dir())}

    def mqtwin(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [str(environment / "bin" / "mqtwin"), *arguments]
        return subprocess.run(command, cwd=home, env=blank, check=True, capture_output=True, text=True)

    assert mqtwin("--version").stdout.strip() == VERSION
    estate, recording = write_estate(tmp_path), write_lines(tmp_path / "t.ndjson", lines_of(traffic(2000)))
    alerts = mqtwin("replay", str(recording), "--estate", str(estate), "--alerts", "-").stdout
    expected = replay(recording, load_estate(estate)).alerts
    assert alerts.encode().splitlines() == [alert.record() for alert in expected]
    assert expected
    program = "import mqtwin; print(mqtwin.__file__, mqtwin.replay.__code__.co_filename)"
    where = [str(environment / "bin" / "python"), "-c", program]
    places = subprocess.run(where, cwd=home, env=blank, check=True, capture_output=True, text=True).stdout.split()
    assert len(places) == 2 and all(Path(place).is_relative_to(site) for place in places)
