"""Options of `mqtwin whatif` and `mqtwin advise`: the moment from which a store is rolled forward, and what changes."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from deploy.options.common import KafkaOptions, parse_settings
from deploy.show.terminal import print_warnings
from twin.errors import UsageError
from twin.estate import Estate, EstateError
from twin.estate.errors import known_hint
from twin.estate.planned import Plan, read_plan
from twin.estate.settings import Setting, Settings
from twin.planning.whatif import Moment, Traffic, moment_of, twin_at
from twin.stores.message_store import MessageStore
from twin.stores.open import Twin

_NUMBERS = ("duration_s", "messages", "length", "puts_per_s", "allowed_pct")  # of a plan


@dataclass(frozen=True, slots=True, kw_only=True)
class MomentSource:
    """Where a moment comes from: one of recording, checkpoint and topics; time: time of the recording."""

    recording: Path | None = None
    time: str | None = None
    checkpoint: Path | None = None
    kafka: KafkaOptions | None = None

    def __post_init__(self) -> None:
        """Check the options. UsageError: none or several, or a time without a recording."""
        if sum(source is not None for source in (self.recording, self.checkpoint, self.kafka)) != 1:
            raise UsageError("expected one of --recording FILE, --checkpoint FOLDER and --bootstrap-servers HOST:PORT")
        if self.time is not None and self.recording is None:
            raise UsageError(
                f"--at {self.time} without --recording; expected: --recording, as others have their last state only"
            )


def open_moment(store: str, estate: Estate, source: MomentSource) -> Moment:
    """Return the moment of a store that holds messages. UsageError: as of `open_twin`, or it holds none."""
    return moment_of(estate, open_twin(store, estate, source))


def open_twin(store: str, estate: Estate, source: MomentSource) -> Twin:
    """Return the twin of a store. UsageError: the estate has no such store, or the source cannot be read."""
    if source.recording is not None:
        return twin_at(source.recording, estate, store, source.time)
    if store not in estate.stores:
        raise UsageError(f"{store}: the estate has no such store; expected: {', '.join(sorted(estate.stores))}")
    if source.kafka is not None:
        return _of_topics(store, estate, source.kafka)
    assert source.checkpoint is not None
    return _of_checkpoint(store, estate, source.checkpoint)


def _of_topics(store: str, estate: Estate, kafka: KafkaOptions) -> Twin:
    from streams.kafka.present import read_present
    from streams.log import configure_logging

    configure_logging(level="warning")
    present = read_present(kafka.client(), kafka.topics, estate, store)
    if present.lost:
        print_warnings(
            [f"{store}: the topic has {present.lost:,} of its events no more; it holds what its state record says"]
        )
    if present.differs:
        why = "as the job had another estate for some of its events"
        print_warnings([f"{store}: its state record has other figures, {why}; --checkpoint FOLDER has its state"])
    return present.twin


def _of_checkpoint(store: str, estate: Estate, checkpoint: Path) -> Twin:
    from deploy.java.class_archives import find_spark_java
    from streams.checkpoint.guard import open_stopped
    from streams.log import configure_logging
    from streams.query.stored_state import read_twin

    files, _ = open_stopped(checkpoint)
    if not files.commits:
        raise UsageError(f"{checkpoint} has no committed batch; expected: one that a job has written events into")
    configure_logging(level="critical")  # the error line already says what Spark would log
    return read_twin(checkpoint, estate, store, java=find_spark_java())


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


def parse_plans(items: Iterable[str], twin: Twin) -> tuple[Plan, ...]:
    """Return the planned work of a repeated --plan: parts of a plan, KEY=VALUE separated by commas, or an id.
    UsageError: a plan is wrong, or the store has none of that id.
    """
    return tuple(_plan_of(text, twin) for text in items)


def _plan_of(text: str, twin: Twin) -> Plan:
    if not isinstance(twin, MessageStore):
        raise UsageError(f"--plan: {twin.name} holds no messages; expected: a store that does")
    if "=" not in text:
        known = {plan.id: plan for plan in twin.monitor.plans.known}
        if text not in known:
            raise UsageError(f"--plan {text}: {twin.name} has no plan of that id{known_hint(text, known)}")
        return known[text]
    words = parse_settings("--plan", text.split(","))
    parts = {key: _value(value) if key in _NUMBERS else value for key, value in words.items()}
    try:
        plan = read_plan({"id": "planned", **parts}, twin.config)
    except EstateError as error:
        raise UsageError(f"--plan {text}: {error}") from None
    assert isinstance(plan, Plan)  # `cancelled` would have to be true, and is a text
    return plan


def parse_set(items: Iterable[str]) -> Settings:
    """Return the attributes of a repeated --set. UsageError: not of the form KEY=VALUE."""
    return {key: _value(text) for key, text in parse_settings("--set", items).items()}


def _value(text: str) -> Setting:
    """Return a value as the estate file would read it; a word without quotes is a string, none removes a value."""
    if text.lower() == "none":
        return None
    try:
        value: Setting = tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text
    return value
