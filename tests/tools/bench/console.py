"""How long the console's page takes in a real Chromium: its start, its slider, an answer to what-if.

On a recording of a million events, and its start with two hundred stores. Times are the page's own: from the start of
the navigation, or from the input, until the frame with what was asked for is drawn.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import twin
from deploy.console.model import ConsoleModel
from deploy.console.past import PastTwins
from deploy.console.server import ConsoleServer, Listen
from streams.kafka.topics import Topics
from tests.support.chromium import CHROMIUM, QUIET
from tests.support.console_feed import two_hundred_stores
from tests.tools.bench.rig import Say
from twin.playback.timeline import Timeline

AIM_MS = 300.0
START, MANY, SLIDER, WHAT_IF = (
    "page start, recording of a million events",
    "page start, 200 stores",
    "slider to another moment",
    "what-if at a moment",
)
_TIMES, _QUICK_TIMES = 15, 3
_STORE = "#/store/QSG1%2FAPP1?t=2026-11-20T01:40:00Z"

# In the page: `timed(input, shown)` resolves with the milliseconds until `shown` returns true and that is drawn.
# `asked` and `answered` count the page's requests; an answer counts when the page has had a turn to draw it.
_TIMED = """
window.asked = window.answered = 0;
const ask = window.fetch;
window.fetch = async (...request) => {
  window.asked += 1;
  const answer = await ask(...request);
  answer.clone().text().then(() => setTimeout(() => { window.answered += 1; }));
  return answer;
};
window.timed = (act, shown, since) => new Promise((done) => {
  const began = since ?? performance.now();
  const look = () => {
    if (!shown()) { requestAnimationFrame(look); return; }
    requestAnimationFrame(() => {
      const channel = new MessageChannel(); // its message comes right after the frame
      channel.port1.onmessage = () => done(performance.now() - began);
      channel.port2.postMessage(0);
    });
  };
  act();
  look();
})"""


@dataclass(slots=True)
class Console:
    """Milliseconds by what was measured, each time; empty, and why, where there is no Chromium."""

    milliseconds: dict[str, list[float]] = field(default_factory=dict)
    why_not: str = ""

    def median(self, name: str) -> float:
        """Return the median, milliseconds."""
        return statistics.median(self.milliseconds[name])

    def longest(self, name: str) -> float:
        """Return the longest, milliseconds."""
        return max(self.milliseconds[name])


def measure(folder: Path, say: Say, *, quick: bool) -> Console:
    """Measure the pages; each start has a browser context of its own, without a cache."""
    if CHROMIUM is None:
        return Console(why_not="no Chromium: install the package chromium")
    times = _QUICK_TIMES if quick else _TIMES
    say("console: a recording of a million events")
    recording = folder / "friday.arrow"
    twin.simulate(twin.make_scenario("getter-outage"), twin.demo_estate(), recording, seed=1)
    past = PastTwins(Timeline(recording, twin.demo_estate()))
    model = ConsoleModel(Topics("mqtwin"))
    model.fold(two_hundred_stores())
    say(f"console: {times} starts of each page, slider and what-if {times} times")
    measured = Console()
    with _browser(CHROMIUM) as new_page:
        with ConsoleServer(past.model_at(past.moments.first), Listen(port=0), past, past) as server:
            starts = _starts(new_page, times, server.address + _STORE, "document.querySelector('.compare .big')")
            measured.milliseconds[START] = starts
            with new_page() as page:
                page.goto(server.address + _STORE)
                page.wait_for_selector(".compare .big")
                measured.milliseconds[SLIDER] = [_move(page, 250 + 2 * turn) for turn in range(times)]
                measured.milliseconds[WHAT_IF] = [_ask(page, 2 + turn % 2) for turn in range(times)]
        with ConsoleServer(model, Listen(port=0)) as server:
            condition = "document.querySelectorAll('.map .cell').length === 200"
            measured.milliseconds[MANY] = _starts(new_page, times, server.address + "#/", condition)
    return measured


@contextmanager
def _browser(chromium: str) -> Iterator[Callable[[], Any]]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=[*QUIET])

        @contextmanager
        def new_page() -> Iterator[Any]:
            context = browser.new_context(viewport={"width": 1440, "height": 900})
            page = context.new_page()
            page.add_init_script(_TIMED)
            yield page
            context.close()

        yield new_page
        browser.close()


def _starts(new_page: Callable[[], Any], times: int, address: str, condition: str) -> list[float]:
    """Return the milliseconds of each start; the first, in which Chromium itself starts, is left out."""
    milliseconds = []
    for _ in range(times + 1):
        with new_page() as page:
            page.add_init_script(f"window.started = timed(() => {{}}, () => {condition}, 0)")
            page.goto(address)
            milliseconds.append(float(page.evaluate("window.started")))
    return milliseconds[1:]


def _move(page: Any, place: int) -> float:
    """Return the milliseconds from moving the slider to the figures of that moment."""
    return _input(page, "input[aria-label='Moment of the recording']", place)


def _ask(page: Any, puts: int) -> float:
    """Return the milliseconds from moving the slider of puts to its answer."""
    return _input(page, "#whatif-puts", puts)


def _input(page: Any, slider: str, value: int) -> float:
    """Return the milliseconds from moving a slider until all that the page asks for then is answered and drawn."""
    page.evaluate("timed(() => {}, () => asked === answered)")
    before = page.evaluate("asked")
    return float(
        page.evaluate(
            """([slider, value, before]) => timed(() => {
            const box = document.querySelector(slider);
            box.value = value;
            box.dispatchEvent(new Event("input", {bubbles: true}));
            }, () => asked > before && asked === answered)""",
            [slider, value, before],
        )
    )
