"""Pictures of the terminal of `mqtwin demo`, docs/images/demo.svg, and of a day without SCM, docs/images/leave-scm.svg.

    .venv/bin/python -m docs.make_pictures

The demo's scenario is simulated and played through the twin up to 15 minutes before the first 2192, and
`deploy.show.picture` draws the states and alerts of that time. The same seed gives the same picture. The other one is
drawn by `mqtwin advise --leave-scm` (docs/leave-scm.md).
"""

from __future__ import annotations

import functools
import io
import sys
import tempfile
from pathlib import Path
from typing import Any

import msgspec
from rich.console import Console
from rich.terminal_theme import TerminalTheme

import twin
from deploy.show.leaving import draw_leaving
from deploy.show.picture import picture
from twin.estate import Estate, load_estate
from twin.planning.leave_scm import Leaving
from twin.playback.replays import Player, decoded_chunks
from twin.records import AlertRecord
from twin.simulation import Scenario, SideBySide, demo_estate, make_scenario, side_by_side_estate, simulate

OUT = Path(__file__).parent / "images" / "demo.svg"
LEAVE_SCM = OUT.with_name("leave-scm.svg")
SEED = 1  # default of `mqtwin demo`
SECONDS = 60.0  # wall time of the demo for its six hours
BEFORE = 900  # seconds of event time before the first 2192
SCM_ESTATE = Path(twin.__file__).parent / "simulation" / "scm.toml"
WIDTH = 110  # characters
PIECE = 500  # events between two comparisons with the time of the picture

_DARK = "484f58 da3633 3fb950 d29922 58a6ff bc8cff 39c5cf ffffff"  # black, red, green ... white, as red-green-blue
_BRIGHT = "6e7681 ffa198 56d364 e3b341 79c0ff d2a8ff 56d4dd f0f6fc"


def _colours(text: str) -> list[tuple[int, int, int]]:
    return [(octets[0], octets[1], octets[2]) for octets in map(bytes.fromhex, text.split())]


THEME = TerminalTheme(_colours("161b22")[0], _colours("c9d1d9")[0], _colours(_DARK), _colours(_BRIGHT))

# Rich's default frame loads a font from the network; this frame uses fonts of the reader's machine.
FRAME = """<svg class="rich-terminal" viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">
<title>mqtwin demo: three structures, and alerts before the first 2192</title>
<style>
.{unique_id}-matrix {{
  font-family: "DejaVu Sans Mono", Menlo, Consolas, monospace;
  font-size: {char_height}px; line-height: {line_height}px; font-variant-east-asian: full-width;
}}
{styles}
</style>
<defs>
<clipPath id="{unique_id}-clip-terminal">
<rect x="0" y="0" width="{terminal_width}" height="{terminal_height}" />
</clipPath>
{lines}
</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g>
</g>
</svg>
"""


Played = tuple[dict[str, dict[str, Any]], list[AlertRecord], int, float]


@functools.cache
def played() -> Played:
    """Return states and alerts 15 minutes before the demo's first 2192, events of the recording, speed of the demo."""
    return _play(side_by_side_estate(), SideBySide())


@functools.cache
def outage() -> Played:
    """Return the same of the example of the README: a getter that stops for two hours."""
    return _play(demo_estate(), make_scenario("getter-outage"))


def _play(estate: Estate, scenario: Scenario) -> Played:
    with tempfile.TemporaryDirectory() as folder:
        recording = Path(folder) / "demo.arrow"
        outcome = simulate(scenario, estate, recording, SEED)
        if outcome.first_full is None:
            sys.exit("no put is refused in the scenario: there is nothing to show")
        until = outcome.first_full[0] - BEFORE * 1_000_000
        player = Player(estate)
        alerts: list[AlertRecord] = []
        for chunk in decoded_chunks(recording, estate):
            for piece in chunk.split(range(0, len(chunk), PIECE)):
                if piece.events["time"][0] > until:
                    return player.states(), alerts, outcome.events, (outcome.last - outcome.first) / 1e6 / SECONDS
                alerts += [msgspec.json.decode(alert.record(), type=AlertRecord) for alert in player.feed(piece)]
    sys.exit("the recording ended before the picture was due")


def draw() -> str:
    """Return the picture as SVG."""
    states, alerts, total, speed = played()
    console = Console(width=WIDTH, record=True, file=io.StringIO(), force_terminal=True, color_system="standard")
    console.print(picture(states, alerts, total, speed))
    return console.export_svg(title="mqtwin demo", theme=THEME, code_format=FRAME, unique_id="demo")


def leave_scm(store: str = "QSG1/APP1") -> Leaving:
    """Return the advice of docs/leave-scm.md: the scenario scm-day on the estate scm.toml."""
    with tempfile.TemporaryDirectory() as folder:
        recording, estate = Path(folder) / "day.arrow", load_estate(SCM_ESTATE)
        simulate(make_scenario("scm-day"), estate, recording)
        return twin.leave_scm(recording, estate, store)


if __name__ == "__main__":
    draw_leaving(LEAVE_SCM, [leave_scm()])
    OUT.write_text(draw(), encoding="utf-8")
    print(OUT)
