"""Hatchling's hook: the wheel gets the pages of docs/ and a bill of materials.

The bill (`mqtwin-VERSION.dist-info/sboms/mqtwin.cdx.json`, CycloneDX, as PEP 770 has it) lists what mqtwin runs on, in
the versions that are tested: the packages of `constraints.txt`, the charts of the console, and the jars that are
fetched at the first use, with their SHA-256; their licences are in `pyproject.toml`. Two builds of one commit make the
same bytes.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import tempfile
import tomllib
import uuid
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.builders.utils import get_reproducible_timestamp

# Headings of constraints.txt, and whether mqtwin needs what stands below them: CycloneDX's scope.
_SCOPES = {"What mqtwin runs on": "required", "What its extras add": "optional"}


class CustomBuildHook(BuildHookInterface[Any]):
    """The file, written before the wheel and removed after it."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Write the file where hatchling finds it.

        Args:
            version: kind of wheel, `standard` or `editable`. An editable one has no bill.
            build_data: what hatchling puts into the wheel besides the packages.
        """
        self._folder = Path(tempfile.mkdtemp(prefix="mqtwin-wheel-"))
        if version != "editable":
            for page in sorted(Path(self.root, "docs").glob("*.md")):  # `mqtwin mcp` searches them
                build_data["force_include"][str(page)] = f"deploy/ask/documentation/{page.name}"
            bill = self._folder / "mqtwin.cdx.json"
            bill.write_text(json.dumps(self._bill(), indent=1) + "\n", encoding="utf-8")
            build_data["sbom_files"].append(str(bill))

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:  # noqa: ARG002 -- hatchling's
        """Remove the file, which is in the wheel now."""
        shutil.rmtree(self._folder)

    def _bill(self) -> dict[str, Any]:
        core = self.metadata.core
        wheel = _package(core.name, self.metadata.version)
        [author] = core.authors
        wheel |= {"description": core.description, "licenses": [{"expression": core.license_expression}]}
        wheel["supplier"] = author
        packages, jars = self._packages(), [self._charts(), *self._jars()]
        self._add_licences(packages + jars)
        names = re.findall(r"^[\w.-]+", "\n".join(core.dependencies), re.MULTILINE)
        direct = {_package(name, "")["name"] for name in names}
        needs = [package["bom-ref"] for package in packages if package["name"] in direct]
        moment = datetime.fromtimestamp(get_reproducible_timestamp(), UTC)
        content = {
            "metadata": {"timestamp": f"{moment:%Y-%m-%dT%H:%M:%SZ}", "authors": [author], "component": wheel},
            "components": packages + jars,
            "dependencies": [{"ref": wheel["bom-ref"], "dependsOn": needs + [jar["bom-ref"] for jar in jars]}],
        }
        number = uuid.uuid5(uuid.NAMESPACE_OID, json.dumps(content))
        return {
            "bomFormat": "CycloneDX",
            "specVersion": "1.6",
            "serialNumber": f"urn:uuid:{number}",
            "version": 1,
        } | content

    def _packages(self) -> list[dict[str, Any]]:
        scope, packages = None, []
        for line in Path(self.root, "constraints.txt").read_text(encoding="utf-8").splitlines():
            if line.startswith("#"):
                scope = next((scope for heading, scope in _SCOPES.items() if heading in line), None)
            elif scope:
                packages.append(_package(*line.split("==")) | {"scope": scope})
        return packages

    def _charts(self) -> dict[str, Any]:
        """Return the one library that is in the wheel itself."""
        content = Path(self.root, "deploy", "console", "static", "uPlot.iife.min.js").read_bytes()
        version = re.search(rb"\(v([0-9.]+)\)", content)
        assert version is not None, "uPlot.iife.min.js begins with its version"
        number = version[1].decode()
        sha256 = hashlib.sha256(content).hexdigest()
        return _library(f"pkg:npm/uplot@{number}", "uplot", number) | {
            "hashes": [{"alg": "SHA-256", "content": sha256}]
        }

    def _jars(self) -> list[dict[str, Any]]:
        text = Path(self.root, "deploy", "java", "jars.lock.toml").read_text(encoding="utf-8")
        jars = {coordinate: sha256 for jars in tomllib.loads(text).values() for coordinate, sha256 in jars.items()}
        return [_jar(coordinate, sha256) for coordinate, sha256 in sorted(jars.items())]

    def _add_licences(self, components: list[dict[str, Any]]) -> None:
        """Add the licence of each component: of a package by its name, of a jar by its group."""
        project = tomllib.loads(Path(self.root, "pyproject.toml").read_text(encoding="utf-8"))
        table = project["tool"]["mqtwin"]["licences"]
        licences = {name: licence for licence, names in table.items() for name in names}
        for component in components:
            name = component.get("group", component["name"])
            if name not in licences:
                raise ValueError(f"{name} has no licence; expected: [tool.mqtwin.licences] of pyproject.toml")
            component["licenses"] = [{"expression": licences[name]}]


def _package(name: str, version: str) -> dict[str, Any]:
    name = re.sub(r"[-_.]+", "-", name).lower()
    return _library(f"pkg:pypi/{name}@{version.replace('!', '%21')}", name, version)


def _jar(coordinate: str, sha256: str) -> dict[str, Any]:
    group, name, version = coordinate.split(":")
    jar = _library(f"pkg:maven/{group}/{name}@{version}", name, version)
    return jar | {"group": group, "hashes": [{"alg": "SHA-256", "content": sha256}]}


def _library(purl: str, name: str, version: str) -> dict[str, Any]:
    return {"type": "library", "bom-ref": purl, "name": name, "version": version, "purl": purl}
