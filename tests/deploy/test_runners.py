"""The examples of runners of a site: what they read is what mqtwin hands over, and no text becomes part of a script."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import msgspec
import yaml

from deploy.handover import HandedOver
from tests.support.asked_acts import EXPAND, estate, request
from tests.twin.test_proposals import TEMPLATES

ROOT = Path(__file__).resolve().parents[2] / "deploy" / "runners"
FIELDS = set(HandedOver.__struct_fields__)
STATEMENTS = (
    EXPAND,
    "ALTER CFSTRUCT(APP1) OFFLD1TH(40) OFFLD1SZ(32K)",
    "ALTER QLOCAL('a.b%/_') MAXFSIZE(4096)",
    "SETXCF START,ALTER,STRNAME=QSG1APP1,SIZE=8M",
)


def handed_over(folder: Path) -> bytes:
    own = request(estate(folder))
    fields = {name: getattr(own, name, None) for name in FIELDS} | {"requested_by": "ann", "approved_by": ("bob",)}
    return msgspec.json.encode(HandedOver(**fields))


def test_the_rulebook_has_the_keys_of_one_and_reads_what_is_handed_over() -> None:
    text = (ROOT / "eda-rulebook.yml").read_text(encoding="utf-8")
    [ruleset] = yaml.safe_load(text)
    assert ruleset.keys() == {"name", "hosts", "sources", "rules"}
    [source] = ruleset["sources"]
    assert source["ansible.eda.webhook"].keys() == {"host", "port", "token"}
    assert source["ansible.eda.webhook"]["host"] == "127.0.0.1"
    for rule in ruleset["rules"]:
        assert rule.keys() == {"name", "condition", "action"}
        assert rule["action"]["run_playbook"].keys() == {"name", "extra_vars"}
    assert set(re.findall(r"event\.payload\.(\w+)", text)) <= FIELDS
    languages = re.findall(r'language == "(\w+)"', text)
    assert sorted(languages) == ["MQSC", "SETXCF"]


def test_the_job_of_rundeck_takes_its_options_as_variables() -> None:
    [job] = yaml.safe_load((ROOT / "rundeck-job.yaml").read_text(encoding="utf-8"))
    options = {option["name"]: option for option in job["options"]}
    assert options.keys() <= FIELDS and all(option["required"] for option in options.values())
    assert job["multipleExecutions"] is False and not job["scheduleEnabled"]
    [step] = job["sequence"]["commands"]
    assert set(re.findall(r"\$RD_OPTION_(\w+)", step["script"])) == {"LANGUAGE", "STATEMENT", "TARGET"}
    assert "@option." not in step["script"] and "${option." not in step["script"]
    assert not re.search(r"(?<!\")\$RD_OPTION_(STATEMENT|LANGUAGE)", step["script"]), "quoted"
    for statement in STATEMENTS:
        assert any(re.fullmatch(template, statement) for template in TEMPLATES.values())
        assert re.fullmatch(options["statement"]["regex"], statement), statement
    assert not re.fullmatch(options["statement"]["regex"], "CLEAR QLOCAL(A)")
    assert subprocess.run(["bash", "-n"], input=step["script"].encode(), check=False).returncode == 0


def test_the_script_for_rundeck_passes_each_text_as_one_argument(tmp_path: Path) -> None:
    rd = tmp_path / "rd"
    rd.write_text(
        f'#!{sys.executable}\nimport json, sys\nprint(json.dumps(sys.argv[1:]))\nsys.exit("fail" in sys.argv)\n'
    )
    rd.chmod(0o755)
    environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    for project, status in (("mq", 0), ("fail", 1)):
        command = [sys.executable, str(ROOT / "rundeck.py"), project]
        done = subprocess.run(
            command, input=handed_over(tmp_path), env=environment, capture_output=True, timeout=30, check=False
        )
        assert done.returncode == status, done.stderr
        words = json.loads(done.stdout)
        assert words[words.index("-statement") + 1] == EXPAND and words[words.index("-target") + 1] == "QM01"


def test_the_script_for_a_rulebook_posts_what_it_got_and_leaves_the_result_unknown(tmp_path: Path) -> None:
    got: list[tuple[bytes, str | None]] = []

    class Webhook(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            got.append((self.rfile.read(int(self.headers["content-length"])), self.headers["authorization"]))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Webhook) as server:
        Thread(target=server.handle_request, daemon=True).start()
        token = tmp_path / "token"
        token.write_text("a-token\n")
        url = f"http://127.0.0.1:{server.server_port}/endpoint"
        command = [sys.executable, str(ROOT / "eda.py"), url, str(token)]
        value = handed_over(tmp_path)
        done = subprocess.run(command, input=value, capture_output=True, timeout=30, check=False)
    assert (done.returncode, done.stdout) == (1, b"the rulebook has it (200)\n"), done.stderr
    assert got == [(value, "Bearer a-token")]
