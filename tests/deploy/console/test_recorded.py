"""The recorded night of `mqtwin demo --recorded` and of demo.html: one page, nothing from outside, nothing compiled."""

from __future__ import annotations

import os
import re
import select
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.request import urlopen

import pytest
from playwright.sync_api import Browser, expect

from deploy.console.recorded import NIGHT, read_story, recorded_page, serve_page
from docs.make_demo import PAGE
from tests.support.chromium import CHROMIUM

ROOT = Path(__file__).parents[3]
MAX_BYTES = 2_000_000
SIZES = {"phone": (390, 844), "laptop": (1440, 900), "wall": (2560, 1440)}
HIDE = "from tests.support.base import hide\nhide()\n"
DEMO = """
import sys
from deploy.cli import main
status = main(sys.argv[1:])
print("loaded:", *sorted({"numba", "pyarrow", "pyspark", "confluent_kafka"} & sys.modules.keys()))
sys.exit(status)
"""
AT_ONCE = """
import sys
from deploy.cli import main
from deploy.commands import demo
demo._SPEED = 1e9
sys.exit(main(["demo", "--recorded"]))
"""
IN_FRONT = "import fcntl, termios\nfcntl.ioctl(0, termios.TIOCSCTTY, 0)\n"  # as a shell starts it in a terminal
ADVICE, YOUR_OWN = "What would have helped QSG1/APP2.", "mqtwin start monday.smf qm01.joblog policy.txt"
PATIENCE_S = 60.0


@contextmanager
def in_terminal(program: str) -> Iterator[tuple[subprocess.Popen[bytes], int, Callable[[str], str]]]:
    """A program in a terminal of its own: the process, the terminal, and what waits until a text is printed."""
    terminal, side = os.openpty()
    before = termios.tcgetattr(side)
    command = [sys.executable, "-c", program]
    process = subprocess.Popen(command, cwd=ROOT, stdin=side, stdout=side, stderr=side, start_new_session=True)

    def until(text: str) -> str:
        printed, deadline = "", time.monotonic() + PATIENCE_S
        while text not in " ".join(printed.split()):
            assert select.select([terminal], [], [], deadline - time.monotonic())[0], printed
            printed += os.read(terminal, 65536).decode()
        return " ".join(printed.split())

    try:
        yield process, terminal, until
        assert process.wait(PATIENCE_S) == 0
        assert termios.tcgetattr(side) == before
    finally:
        process.kill()
        process.wait()
        os.close(side)
        os.close(terminal)


def test_the_page_loads_nothing_and_is_small():
    page = recorded_page()
    assert NIGHT.stat().st_size < MAX_BYTES and len(page.encode()) < MAX_BYTES
    markup = re.sub(r"<(script|style)\b([^>]*)>.*?</\1>", r"<\1\2>", page, flags=re.DOTALL)
    assert not re.search(r'(?:src|href)="(?!#|data:)', markup)
    assert 'from "./' not in page


def test_the_page_is_served_to_this_machine_alone():
    with serve_page(0) as address:
        assert address.startswith("http://127.0.0.1:")
        assert urlopen(address).read().decode() == recorded_page()


def test_three_lines_tell_of_each_store_that_fills():
    lines = [line.text for line in read_story().lines]
    times = [line.time for line in read_story().lines]
    assert times == sorted(times)
    page, threshold, refused = lines[:3]
    assert re.search(r"mqtwin pages, \d\d min before: SMDS blocks of QM01 for QSG1/APP2: .* full in about", page)
    assert (
        "FULLTHRESHOLD(80) of QSG1/APP2 has said nothing: it watches entries and elements, not data sets" in threshold
    )
    assert refused.endswith("the first put to QSG1/APP2 is refused with 2192")
    assert any("FULLTHRESHOLD(80) of QSG1/APP3 is passed" in line for line in lines), (
        "it is said where the line was good"
    )


@pytest.mark.parametrize(("head", "words"), [("", ["--recorded"]), (HIDE, [])], ids=["asked for", "without the extra"])
def test_the_command_tells_the_night_without_a_kernel(head: str, words: list[str]):
    command = [sys.executable, "-c", head + DEMO, "demo", "--no-console", *words]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1].split() == ["loaded:"]
    assert [line for line in done.stdout.splitlines() if line.startswith("2026-")] == [
        line.text for line in read_story().lines
    ]
    assert ADVICE in done.stdout and YOUR_OWN in done.stdout


def test_in_a_terminal_one_key_shows_what_would_have_helped_and_another_the_way_to_files_of_ones_own():
    with in_terminal(IN_FRONT + AT_ONCE) as (_, terminal, until):
        printed = until("the first put to QSG1/APP3 is refused with 2192 h: what would have helped")
        assert ADVICE not in printed and YOUR_OWN not in printed
        os.write(terminal, b"xh")
        assert YOUR_OWN not in until(f"{ADVICE} As of")
        os.write(terminal, b"F")
        until(YOUR_OWN)
        os.write(terminal, b"\x03")


def test_a_key_is_answered_while_the_night_plays():
    with in_terminal(IN_FRONT + AT_ONCE.replace("1e9", "1e-3")) as (process, terminal, until):
        until("Ctrl-C: the end")
        os.write(terminal, b"h")
        assert "2026-11-20 02:31" not in until(ADVICE)
        process.send_signal(signal.SIGTERM)


def test_of_a_terminal_that_another_program_has_no_key_is_taken():
    with in_terminal(AT_ONCE) as (process, _, until):
        assert "Ctrl-C: the end" not in until(YOUR_OWN)
        process.send_signal(signal.SIGTERM)


def test_piped_the_page_stays_and_both_are_lines():
    command = [sys.executable, "-c", AT_ONCE]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout is not None
        lines = []
        while not lines or "--once" not in lines[-1]:
            lines.append(process.stdout.readline())
        process.send_signal(signal.SIGTERM)
        assert process.stdout.read() == ""
    assert process.returncode == 0
    assert any(line.startswith(ADVICE) for line in lines) and f"  {YOUR_OWN}\n" in lines


def test_the_docs_have_the_page():
    """`python -m docs.make_demo page` writes it, as does `make commands`."""
    assert PAGE.read_text(encoding="utf-8") == recorded_page()


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium: install the package chromium")
@pytest.mark.nightly
@pytest.mark.ci
@pytest.mark.parametrize("size", SIZES)
def test_the_page_plays_from_a_file_with_the_network_off(browser: Browser, tmp_path: Path, size: str):
    path = tmp_path / "demo.html"
    path.write_text(recorded_page(), encoding="utf-8")
    width, height = SIZES[size]
    context = browser.new_context(viewport={"width": width, "height": height}, offline=True)
    complaints: list[str] = []
    page = context.new_page()
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
    page.on("request", lambda own: complaints.append(own.url) if not own.url.startswith(("file:", "data:")) else None)
    page.goto(path.as_uri())
    expect(page.locator(".past button").first).to_have_text("Pause", timeout=60_000)
    expect(page.locator("h1")).to_contain_text("QSG1/APP2", timeout=60_000)
    page.goto(f"{path.as_uri()}#/store/QSG1%2FAPP2?t=2026-11-20T02:40:00Z")
    page.reload()
    expect(page.locator(".hero")).to_contain_text("SMDS QM01", timeout=60_000)
    expect(page.locator(".chart canvas").first).to_be_visible()
    page.get_by_role("button", name="What would help").click()
    expect(page.locator(".plans li").first).to_be_visible(timeout=60_000)
    slider = page.locator("#whatif-gets")
    slider.fill("2")
    expect(page.locator(".whatif [role=status]").first).to_contain_text("With gets x 2", timeout=60_000)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    context.close()
    assert complaints == []
