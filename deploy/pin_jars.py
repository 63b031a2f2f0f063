"""``python -m deploy.pin_jars``: resolves ``jars.toml`` anew and writes ``jars.lock.toml`` beside it.

For maintainers, after a change of versions. The sums are those of what Maven Central serves now, so look at the
difference before committing it.
"""

from __future__ import annotations

import hashlib
import tempfile
import tomllib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from deploy.jars import DOWNLOADS_AT_ONCE, maven

WANTED = Path(__file__).with_name("jars.toml")
LOCK = Path(__file__).with_name("jars.lock.toml")


def resolve(coordinates: list[str], excluded: list[str], folder: Path) -> dict[str, str]:
    """Every jar that ``coordinates`` need at run time, but for ``excluded``: coordinate -> SHA-256.

    ``coordinates`` are group:artifact:version, ``excluded`` group:artifact. ``folder`` takes the downloads; an empty
    one, as what an interrupted run left in it would be taken for good.
    """
    # EnvironmentBuilder.from_spec would do it all, but it first looks for a JDK of its own and fails without a home.
    from jgo.env import EnvironmentBuilder, EnvironmentSpec

    context = maven(folder)
    builder = EnvironmentBuilder(context=context, cache_dir=folder)
    wanted = builder.spec_to_dependencies(EnvironmentSpec(coordinates=coordinates, exclusions=excluded))
    direct, transitive = context.resolver.resolve(wanted)
    jars = sorted({dependency.artifact for dependency in (*direct, *transitive)}, key=str)
    with ThreadPoolExecutor(DOWNLOADS_AT_ONCE) as pool:
        files = list(pool.map(lambda artifact: artifact.resolve(), jars))
    return {
        f"{jar.groupId}:{jar.artifactId}:{jar.version}": hashlib.sha256(file.read_bytes()).hexdigest()
        for jar, file in zip(jars, files, strict=True)
    }


def main() -> None:
    """Writes ``jars.lock.toml``."""
    lines = ["# Written by python -m deploy.pin_jars from jars.toml: every jar with its SHA-256. Do not edit."]
    for name, wanted in tomllib.loads(WANTED.read_text(encoding="utf-8")).items():
        with tempfile.TemporaryDirectory() as folder:
            jars = resolve(wanted["coordinates"], wanted["excluded"], Path(folder))
        lines += ["", f"[{name}]", *(f'"{coordinate}" = "{sha256}"' for coordinate, sha256 in sorted(jars.items()))]
        print(f"{name}: {len(jars)} jars")
    LOCK.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
