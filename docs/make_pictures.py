"""Picture of the terminal of `mqtwin demo`, docs/images/demo.svg.

    make numbers

The demo's scenario is simulated and played through the twin up to 15 minutes before the first 2192, and
`deploy.show.demo` draws the states and alerts of that time. The same seed gives the same picture.
"""

from __future__ import annotations

import io
import tempfile
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import TerminalTheme

from deploy.show.demo import picture
from kernels.clock import SECOND
from twin.playback.replays import play
from twin.playback.samples import Alerts
from twin.records import read_alert_record
from twin.simulation import SideBySide, side_by_side_estate, simulate

OUT = Path(__file__).parent / "images" / "demo.svg"
SEED = 1  # default of `mqtwin demo`
SECONDS = 60.0  # wall time of the demo for its six hours
BEFORE = 900  # seconds of event time before the first 2192
WIDTH = 110  # characters

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


def draw() -> str:
    """Return the picture as SVG: states and alerts 15 minutes before the demo's first 2192."""
    estate = side_by_side_estate()
    with tempfile.TemporaryDirectory() as folder:
        recording = Path(folder) / "demo.arrow"
        outcome = simulate(SideBySide(), estate, recording, SEED)
        assert outcome.first_full is not None, "no put is refused in the scenario: there is nothing to show"
        seen = Alerts()
        player = play(recording, estate, seen, until=outcome.first_full[0] - BEFORE * SECOND)
    alerts = [read_alert_record(alert.record()) for alert in seen.alerts]
    speed = (outcome.last - outcome.first) / SECOND / SECONDS
    console = Console(width=WIDTH, record=True, file=io.StringIO(), force_terminal=True, color_system="standard")
    console.print(picture(player.states(), alerts, outcome.events, speed))
    return console.export_svg(title="mqtwin demo", theme=THEME, code_format=FRAME, unique_id="demo")


def main() -> None:
    """Write the picture."""
    OUT.write_text(draw(), encoding="utf-8")


if __name__ == "__main__":
    main()
