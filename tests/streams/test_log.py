"""The log of long-running commands."""

from __future__ import annotations

from typing import Any

from streams.log import NewsLog


class Lines:
    """A log that keeps the figures of its lines."""

    def __init__(self) -> None:
        self.figures: list[dict[str, Any]] = []

    def info(self, event: str, **figures: int) -> None:
        """Keep a line."""
        assert event == "bridging"
        self.figures.append(figures)


def test_figures_are_logged_when_they_change_and_at_most_once_a_minute() -> None:
    now_s, lines = [0.0], Lines()
    news = NewsLog(lines, "bridging", clock=lambda: now_s[0])
    for time_s, alerts_open in ((0, 0), (1, 2), (2, 3), (30, 4), (61, 4), (130, 4), (200, 0)):
        now_s[0] = time_s
        news.note(alerts_open=alerts_open)
    assert [figures["alerts_open"] for figures in lines.figures] == [2, 4, 0]
