"""``mqtwin share``."""

from __future__ import annotations

import secrets
from typing import Annotated

import msgspec
from cyclopts import Parameter

from deploy.options.common import EstateFile, InputFile, OutputFile, OutputFolder, SecretFile, open_estate
from deploy.show.summaries import shared_summary, show_progress
from twin.base.errors import UsageError
from twin.base.outputs import write_output
from twin.recordings.share import share as share_recording


def share(
    recording: InputFile,
    /,
    *,
    output: Annotated[OutputFolder, Parameter(name=("--output", "-o"))],
    estate: EstateFile | None = None,
    key_file: SecretFile | None = None,
    names: OutputFile | None = None,
) -> None:
    """Write a recording that others may see: names are pseudonyms, times are moved by weeks, lengths and rates stay.

    It replays to the same alerts but for names and the draws of forecasts, as its estate and plans go along.

    Args:
        recording: Recording to read: .ndjson, .ndjson.zst or .arrow.
        output: Folder to write, a new or an empty one.
        estate: Estate file (TOML). Default: estate.toml beside the recording.
        key_file: File with at least 16 random bytes: the same key gives the same pseudonyms again. Default: a key that
            nobody keeps.
        names: File for the table of pseudonyms and names (JSON), which stays with you.
    """
    loaded_estate = open_estate(recording.parent / "estate.toml" if estate is None else estate)
    key = secrets.token_bytes(32)
    if key_file is not None:
        try:
            key = key_file.read_bytes()
        except OSError as error:
            wrong = f"--key-file {key_file} cannot be read: {error.strerror}"
            raise UsageError(f"{wrong}; expected: a file of 16 random bytes or more") from None
    with show_progress("share", recording) as advance:
        shared = share_recording(recording, loaded_estate, output, key, advance)
    if names is not None:
        table = {pseudonym: name for (_, name), pseudonym in sorted(shared.table.items()) if name}
        write_output(names, msgspec.json.format(msgspec.json.encode(table), indent=1) + b"\n")
    print(shared_summary(output, shared))
