"""The texts of plans as files: the changed estate, MQSC commands, a statement of the CFRM policy."""

from __future__ import annotations

from pathlib import Path

from twin.errors import UsageError
from twin.estate import Estate, load_estate
from twin.estate.changed import changed_text
from twin.planning.advise import Advice
from twin.planning.whatif import changed_config


def write_plans(folder: Path, described: Path, estate: Estate, advice: Advice) -> None:
    """Write the texts of each plan; the changed estate is read back and compared with the plan.

    Args:
        folder: where to write; it is made if it is not there.
        described: the estate file.
        estate: what it describes.
        advice: whose plans are written.

    Raises:
        UsageError: the folder cannot be written, or the file describes the store in a form that cannot be changed.
    """
    config = estate.stores[advice.store]
    try:
        folder.mkdir(exist_ok=True)
        for number, plan in enumerate(advice.plans, 1):
            path = folder / f"plan-{number}.toml"
            path.write_text(changed_text(described, config, plan.settings, folder), encoding="utf-8")
            _check(path, advice.store, changed_config(config, plan.settings))
            for suffix, text in ((".mqsc", plan.mqsc), (".cfrm", plan.cfrm)):
                if text:
                    path.with_suffix(suffix).write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{folder} cannot be written: {error.strerror}; expected: a folder") from None


def _check(path: Path, store: str, expected: object) -> None:
    if load_estate(path).stores[store] != expected:
        raise UsageError(f"{path}: {store} is not that of the plan; expected: tables of its own in the estate file")
