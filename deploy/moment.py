"""Options of `mqtwin whatif` and `mqtwin advise`: the moment from which a store is rolled forward, and its traffic."""

from __future__ import annotations

from pathlib import Path

from deploy.options import parse_settings
from twin.errors import UsageError
from twin.estate import Estate
from twin.whatif import Moment, Traffic, at_moment, moment_of


def open_moment(
    store: str, estate: Estate, recording: Path | None, time: str | None, checkpoint: Path | None
) -> Moment:
    """Return the moment of --recording and --at, or of --checkpoint. UsageError: both or none, or not to be read."""
    if (recording is None) == (checkpoint is None):
        raise UsageError("expected either --recording FILE or --checkpoint FOLDER")
    if recording is not None:
        return at_moment(recording, estate, store, time)
    if time is not None:
        raise UsageError("--at belongs to --recording; a checkpoint holds its last batch only")
    if store not in estate.stores:
        raise UsageError(f"{store}: the estate has no such store; expected: {', '.join(sorted(estate.stores))}")
    from deploy.java import find_java
    from streams.checkpoint.guard import open_stopped
    from streams.log import configure_logging
    from streams.query.stored_state import read_twin

    assert checkpoint is not None
    files, _ = open_stopped(checkpoint)
    if not files.commits:
        raise UsageError(f"{checkpoint} has no committed batch, so there is no state yet")
    configure_logging(level="critical")  # the error line already says what Spark would log
    return moment_of(estate, read_twin(checkpoint, estate, store, java_home=find_java().home))


def parse_traffic(text: str) -> Traffic:
    """Return --traffic, such as `puts=1.5,gets=0`. UsageError: not of that form."""
    factors = parse_settings("--traffic", text.split(",")) if text else {}
    try:
        return Traffic(**{name: float(value) for name, value in factors.items()})
    except TypeError:
        names = ", ".join(Traffic.__struct_fields__)
        raise UsageError(f"--traffic {text}: unknown factor; expected: {names}") from None
    except ValueError:
        raise UsageError(f"--traffic {text}: not a number; expected: such as puts=1.5,gets=0") from None
