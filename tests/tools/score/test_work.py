"""The time of each look, which a score takes along."""

from tests.tools.score.work import timed_looks
from tests.twin.test_alerts_forecast import Story


def test_each_look_of_a_twin_is_timed() -> None:
    story = Story()
    story.go_on(10, puts=20, gets=20)
    with timed_looks() as looks:
        story.go_on(10, puts=20, gets=0)
    assert len(looks) == len({forecast.time for forecast in story.twin.drain_forecasts()}) > 0
    assert all(milliseconds > 0 for milliseconds in looks)
