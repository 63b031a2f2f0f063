"""The example of docs/alerts.md, as the twin publishes it: the first forecast of the quick start's recording.

`.venv/bin/python -m docs.make_alert_example` writes it again; tests/test_examples.py compares it.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterable
from pathlib import Path

import twin

PAGE = Path(__file__).with_name("alerts.md")
BEGIN, END = '```json title="alert"\n', "\n```\n"


def example(alerts: Iterable[twin.Alert]) -> str:
    """Return the JSON of the first alert of a forecast, an entry of `data` to a line.

    Args:
        alerts: alerts of a replay of the recording of the quick start.
    """
    first = next(alert for alert in alerts if alert.condition == "full-forecast")
    record = json.loads(first.record())
    lines = [f'  "{name}": {_inline(value)},' for name, value in record.items() if name != "data"]
    of_data = [f'    "{name}": {_entry(value)}' for name, value in record["data"].items()]
    return "\n".join(["{", *lines, '  "data": {', ",\n".join(of_data), "  }", "}"])


def _inline(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def _entry(value: object) -> str:
    """Return a value on one line, elements of a list of sentences or of actions on one each."""
    if isinstance(value, list) and value and (isinstance(value[0], str) or "steps" in value[0]):
        return "[\n" + ",\n".join(f"      {_inline(element)}" for element in value) + "\n    ]"
    return _inline(value)


def main() -> None:
    """Write the example into the page."""
    with tempfile.TemporaryDirectory() as folder:
        recording = Path(folder) / "friday.arrow"
        twin.simulate("getter-outage", twin.demo_estate(), recording, seed=1)
        text = example(twin.replay(recording, twin.demo_estate(), course=False).alerts)
    page = PAGE.read_text(encoding="utf-8")
    before, _, rest = page.partition(BEGIN)
    PAGE.write_text(before + BEGIN + text + END + rest.partition(END)[2], encoding="utf-8")


if __name__ == "__main__":
    main()
