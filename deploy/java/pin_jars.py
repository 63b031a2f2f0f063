"""``python -m deploy.java.pin_jars``: resolve ``jars.toml`` and write ``jars.lock.toml``.

For maintainers, after a change of versions. The sums are those of the files that Maven Central serves now: review the
difference before committing it.
"""

from __future__ import annotations

import hashlib
import tempfile
import tomllib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from deploy.java.jars import MAX_DOWNLOADS, maven

DIRECT = Path(__file__).with_name("jars.toml")
LOCK = Path(__file__).with_name("jars.lock.toml")


def resolve(coordinates: list[str], excluded: list[str], folder: Path) -> dict[str, str]:
    """Return the SHA-256 sum of every jar needed at run time, by coordinate.

    Args:
        coordinates: Direct dependencies, group:artifact:version.
        excluded: Dependencies to leave out, group:artifact.
        folder: Folder for the downloads. It must be empty: files of an interrupted run would be taken as complete.
    """
    # EnvironmentBuilder.from_spec does all of this, but it first looks for a JDK of its own and fails without a home.
    from jgo.env import EnvironmentBuilder, EnvironmentSpec

    context = maven(folder)
    builder = EnvironmentBuilder(context=context, cache_dir=folder)
    dependencies = builder.spec_to_dependencies(EnvironmentSpec(coordinates=coordinates, exclusions=excluded))
    direct, transitive = context.resolver.resolve(dependencies)
    jars = sorted({dependency.artifact for dependency in (*direct, *transitive)}, key=str)
    with ThreadPoolExecutor(MAX_DOWNLOADS) as pool:
        files = list(pool.map(lambda artifact: artifact.resolve(), jars))
    return {
        f"{jar.groupId}:{jar.artifactId}:{jar.version}": hashlib.sha256(file.read_bytes()).hexdigest()
        for jar, file in zip(jars, files, strict=True)
    }


def main() -> None:
    """Write ``jars.lock.toml``."""
    lines = ["# Written by python -m deploy.java.pin_jars from jars.toml: every jar with its SHA-256. Do not edit."]
    for name, jar_set in tomllib.loads(DIRECT.read_text(encoding="utf-8")).items():
        with tempfile.TemporaryDirectory() as folder:
            jars = resolve(jar_set["coordinates"], jar_set["excluded"], Path(folder))
        lines += ["", f"[{name}]", *(f'"{coordinate}" = "{sha256}"' for coordinate, sha256 in sorted(jars.items()))]
        print(f"{name}: {len(jars)} jars")
    LOCK.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
