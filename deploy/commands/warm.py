"""``mqtwin warm``."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from deploy.options.common import EstateFile, InputFile, OutputFile, open_estate
from deploy.show.summaries import show_progress
from twin.base.outputs import write_output
from twin.base.units import as_count
from twin.estate.planned import history_text
from twin.estate.sources import toml_string
from twin.playback.replays import learn


def warm(
    *,
    recording: Annotated[tuple[InputFile, ...], Parameter(negative="", consume_multiple=True)],
    estate: EstateFile,
    output: Annotated[OutputFile, Parameter(name=("--output", "-o"))],
) -> None:
    """Learn from recordings how rises of stores ended, and their puts by the hour, for the key `history` of an estate.

    Args:
        recording: Recordings: .ndjson, .ndjson.zst or .arrow, the oldest first.
        estate: Estate file (TOML).
        output: File to write (JSON).
    """
    loaded = open_estate(estate)
    with show_progress("warm") as advance:
        history = learn(recording, loaded, advance)
    write_output(output, history_text(history))
    rises = sum(len(past.rises) for past in history.values())
    longest = max((len(past.puts.counts) for past in history.values() if past.puts is not None), default=0)
    written = f"{as_count(rises, 'rise')} of {as_count(len(history), 'store')} written, puts of {longest / 2:g} hours"
    print(f"{written}; in the estate file: history = {toml_string(output.name)}")
