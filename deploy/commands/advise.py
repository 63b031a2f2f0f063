"""``mqtwin advise``, ``mqtwin act`` and ``mqtwin whatif``: advice, the dry run of an action, and questions.

First the options of ``mqtwin whatif`` and ``mqtwin advise``: the moment from which a store is rolled forward, and what
changes.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Annotated

import msgspec
from cyclopts import Parameter
from cyclopts.validators import Number

from deploy.options.common import (
    EstateFile,
    Flag,
    InputFile,
    InputFolder,
    KafkaOptions,
    OutputFile,
    OutputFolder,
    Repeated,
    open_estate,
    parse_settings,
    texts_of,
)
from deploy.show.planning import (
    advice_document,
    answer_document,
    check_picture,
    draw_answer,
    members_document,
    proposal_document,
)
from deploy.show.terminal import emit, print_warnings
from streams.log import configure_logging
from twin.base.conditions import full_reason
from twin.base.errors import UsageError
from twin.base.outputs import Draft, is_same_file, write_output
from twin.base.units import event_us
from twin.estate import Estate, EstateError, load_estate
from twin.estate.errors import known_hint
from twin.estate.planned import Plan as PlannedWork
from twin.estate.planned import read_plan
from twin.estate.settings import Setting, Settings, changed_config, changed_text
from twin.planning.advise import Advice, Plan, Promise, advise_members
from twin.planning.advise import advise as find_advice
from twin.planning.proof import Proof, prove
from twin.planning.proposals import Proposal, alert_of, propose
from twin.planning.whatif import Moment, Traffic, moment_of, twin_at, what_if
from twin.playback.replays import play
from twin.playback.samples import Alerts
from twin.records import read_alert_record
from twin.stores.message_store import MessageStore
from twin.stores.open import Twin
from twin.stores.uniform_cluster import UniformClusterTwin

# --- options: the moment, and what changes ----------------------------------------------------------------------------

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
        return _twin_of_topics(store, estate, source.kafka)
    assert source.checkpoint is not None
    return _of_checkpoint(store, estate, source.checkpoint)


def _twin_of_topics(store: str, estate: Estate, kafka: KafkaOptions) -> Twin:
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
    from deploy.java.jars import find_spark_java
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


def parse_plans(items: Iterable[str], twin: Twin) -> tuple[PlannedWork, ...]:
    """Return the planned work of a repeated --plan: parts of a plan, KEY=VALUE separated by commas, or an id.
    UsageError: a plan is wrong, or the store has none of that id.
    """
    return tuple(_plan_of(text, twin) for text in items)


def _plan_of(text: str, twin: Twin) -> PlannedWork:
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
    assert isinstance(plan, PlannedWork)  # `cancelled` would have to be true, and is a text
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


# --- mqtwin advise ----------------------------------------------------------------------------------------------------


class ReplayedPlan(msgspec.Struct, frozen=True, kw_only=True):
    """A proof without its samples."""

    title: str
    recorded: int
    puts: int
    refused: int
    first_full: str | None
    full: tuple[str, ...]
    unserved_gets: int
    peak_pct: float


class AdviceRecord(Advice, frozen=True, kw_only=True):
    """Advice with its proofs, as `mqtwin advise --json` prints it."""

    replayed: list[ReplayedPlan]


def advise(
    store: str,
    /,
    *,
    estate: EstateFile,
    recording: InputFile | None = None,
    time: Annotated[str | None, Parameter(name="--at")] = None,
    checkpoint: InputFolder | None = None,
    kafka: KafkaOptions | None = None,
    set_: Repeated = (),
    hours: float = 2.0,
    confidence: float = 0.9,
    margin: Annotated[float, Parameter(validator=Number(gte=0, lte=50))] = 0.0,
    traffic: str = "",
    plan: Repeated = (),
    json_: Flag = False,
    html: OutputFile | None = None,
    output: Annotated[OutputFolder | None, Parameter(name=("--output", "-o"))] = None,
) -> None:
    """Find the smallest change that keeps a store from filling in the next hours. Nothing is changed.

    Where it is not full anyway, it prints what could be smaller. Each plan is tested by rolling the store forward.
    Where a recording has all puts of the store, the whole of it is replayed as if the plan had been in effect from its
    beginning: what would be refused in it is enlarged or left out. Of a uniform cluster it says which members carry
    the load.

    Args:
        store: Name of the store, such as QSG1/APP1.
        estate: Estate file (TOML).
        recording: Recording that leads to the moment: .ndjson, .ndjson.zst or .arrow.
        time: Moment of the recording, RFC 3339; its end by default.
        checkpoint: Checkpoint folder of a stopped job, on this machine, instead of a recording.
        kafka: Kafka connection, instead of a recording: the last state of the store in the topics.
        set_: Attribute that changes in any case, such as scm_max_size=0: find what must change beside it.
        hours: Hours to look ahead, within which the store must not be full.
        confidence: Share of all futures in which that must hold, 0.5 to 0.99.
        margin: Percent of the store that a plan must leave free in the recording.
        traffic: Factors on the traffic, such as gets=0 for an outage of all getters.
        plan: Planned work that is to fit, in place of --hours: its id, or its parts, such as
            queue=A,from=TIME,until=TIME,messages=9000; several come together.
        json_: Print JSON instead of text.
        html: File for a page with pictures, to hand on.
        output: Folder to write the texts of each plan to: plan-1.toml, the changed estate; plan-1.mqsc and plan-1.cfrm.
    """
    source = MomentSource(recording=recording, time=time, checkpoint=checkpoint, kafka=kafka)
    promise, factors, required = Promise(hours=hours, confidence=confidence), parse_traffic(traffic), parse_set(set_)
    if output is not None and not output.absolute().parent.is_dir():
        raise UsageError(f"--output {output}; expected: a name in a folder that exists")
    loaded_estate = open_estate(estate)
    twin = open_twin(store, loaded_estate, source)
    if isinstance(twin, UniformClusterTwin):
        if html is not None or output is not None or required or plan:
            raise UsageError(f"{store} is a uniform cluster; expected: no --set, --plan, --html and --output")
        emit(members_document(advise_members(twin, factors.puts)), as_json=json_)
        return
    moment, proofs = moment_of(loaded_estate, twin), tuple[Proof, ...]()
    planned = parse_plans(plan, twin)
    advice = find_advice(moment, promise, factors, required, plan=planned)
    if not planned and recording is not None and moment.is_whole and (advice.plans or advice.smaller):
        advice, proofs = prove(recording, moment, advice, margin)
    name = "" if recording is None else recording.name
    if output is not None:
        write_plans(output, estate, loaded_estate, store, advice.plans)
    replayed = [msgspec.convert(proof, ReplayedPlan, from_attributes=True) for proof in proofs]
    record = AdviceRecord(**msgspec.structs.asdict(advice), replayed=replayed)
    reason = full_reason(loaded_estate.stores[store].kind)
    emit(advice_document(advice, proofs, name, reason, record), as_json=json_, html=html)


def write_plans(folder: Path, described: Path, estate: Estate, store: str, plans: Sequence[Plan]) -> None:
    """Write the texts of each plan; the changed estate is read back and compared with the plan before it is written.
    The folder is made if it is not there. UsageError: the folder cannot be written, a file of it is read, or the estate
    file describes the store in a form that cannot be changed.
    """
    config = estate.stores[store]
    texts = {
        folder / f"plan-{number}{suffix}": text
        for number, plan in enumerate(plans, 1)
        for suffix, text in ((".mqsc", plan.mqsc), (".cfrm", plan.cfrm))
        if text
    }
    estates = {folder / f"plan-{number}.toml": plan for number, plan in enumerate(plans, 1)}
    for path, read in product((*texts, *estates), (described, *texts_of(described))):
        if is_same_file(path, read):
            raise UsageError(f"--output {folder} would replace {read}, which is read; expected: another folder")
    try:
        folder.mkdir(exist_ok=True, parents=True)
    except OSError as error:
        raise UsageError(f"--output {folder} cannot be written: {error.strerror}; expected: a folder") from None
    for path, plan in estates.items():
        with Draft(path) as draft:
            draft.file.write_text(changed_text(described, config, plan.settings, folder), encoding="utf-8")
            if load_estate(draft.file).stores[store] != changed_config(config, plan.settings):
                raise UsageError(
                    f"{path}: {store} is not that of the plan; expected: tables of its own in the estate file"
                )
    for path, text in texts.items():
        write_output(path, text)


# --- mqtwin act -------------------------------------------------------------------------------------------------------

Step = Annotated[int | None, Parameter(validator=Number(gte=1, lte=100))]


def act(
    alert: str,
    action: str,
    /,
    *,
    estate: EstateFile,
    step: Step = None,
    recording: InputFile | None = None,
    time: Annotated[str | None, Parameter(name="--at")] = None,
    kafka: KafkaOptions | None = None,
    json_: Flag = False,
) -> None:
    """Show what a step of an alert's runbook would run, where, its effect, and the way back. Nothing is changed.

    Only changes that mqtwin can write itself are shown: ALTER CFSTRUCT, ALTER PSID, ALTER QLOCAL with MAXFSIZE, and
    SETXCF START,ALTER. To have one run, see mqtwin acts.

    Args:
        alert: Id of the alert, its `alert_id`.
        action: Id of the action in its runbook, such as alter-size.
        estate: Estate file (TOML).
        step: Number of the step in the action. Default: the only one that is such a change.
        recording: Recording that leads to the moment: .ndjson, .ndjson.zst or .arrow.
        time: Moment of the recording, RFC 3339; its end by default.
        kafka: Kafka connection, instead of a recording: the alerts and the last state of the store in the topics.
        json_: Print JSON instead of text.
    """
    source = MomentSource(recording=recording, time=time, kafka=kafka)
    loaded_estate = open_estate(estate)
    own = _recorded(source, loaded_estate, alert, action, step)
    if own is None:
        assert kafka is not None
        own = _of_topics(kafka, source, loaded_estate, alert, action, step)
    emit(proposal_document(own), as_json=json_)


def _recorded(source: MomentSource, estate: Estate, alert_id: str, action: str, step: int | None) -> Proposal | None:
    """Return the proposal at a moment of a recording; None: there is no recording."""
    if source.recording is None:
        return None
    try:
        until = None if source.time is None else event_us(source.time)
    except ValueError as error:
        raise UsageError(f"--at {error}") from None
    seen = Alerts()
    twins = play(source.recording, estate, seen, until=until).twins
    records = {own.alert_id: own for own in seen.alerts}  # the last one of each
    alert = read_alert_record(alert_of(records, alert_id, str(source.recording)).record())
    return propose(alert, action, step, moment_of(estate, twins[alert.data.store]))


def _of_topics(
    kafka: KafkaOptions, source: MomentSource, estate: Estate, alert_id: str, action: str, step: int | None
) -> Proposal:
    from streams.kafka.notes import ActLog

    configure_logging(level="warning")
    states, alerts = ActLog(kafka.client(), kafka.topics).present()
    alert = alert_of(alerts, alert_id, "the topic")
    return propose(alert, action, step, open_moment(alert.data.store, estate, source), states.get(alert.data.store))


# --- mqtwin whatif ----------------------------------------------------------------------------------------------------


def whatif(
    store: str,
    /,
    *,
    estate: EstateFile,
    recording: InputFile | None = None,
    time: Annotated[str | None, Parameter(name="--at")] = None,
    checkpoint: InputFolder | None = None,
    kafka: KafkaOptions | None = None,
    set_: Repeated = (),
    traffic: str = "",
    plan: Repeated = (),
    hours: float = 8.0,
    json_: Flag = False,
    picture: OutputFile | None = None,
) -> None:
    """Compare when a store is full, as it is and with other settings or traffic. Nothing is changed.

    The store is rolled forward from a moment of a recording, from a checkpoint, or from its last state in the topics.

    Args:
        store: Name of the store, such as QSG1/APP1.
        estate: Estate file (TOML).
        recording: Recording that leads to the moment: .ndjson, .ndjson.zst or .arrow.
        time: Moment of the recording, RFC 3339; its end by default.
        checkpoint: Checkpoint folder of a stopped job, on this machine, instead of a recording.
        kafka: Kafka connection, instead of a recording: the last state of the store in the topics.
        set_: Attribute as in the estate, such as offld1_th=60, size=8G or smds.QM01.size=20G; may be repeated.
        traffic: Factors on the traffic, separated by commas, such as puts=1.5,gets=0,lengths=2.
        plan: Planned work that is to fit: its id, or its parts, such as queue=A,from=TIME,until=TIME,messages=9000;
            several come together.
        hours: Hours to look ahead.
        json_: Print JSON instead of text.
        picture: File for a picture: .svg or .png.
    """
    source = MomentSource(recording=recording, time=time, checkpoint=checkpoint, kafka=kafka)
    settings = parse_set(set_)
    factors = parse_traffic(traffic)
    if picture is not None:
        check_picture(picture)
    loaded_estate = open_estate(estate)
    moment = open_moment(store, loaded_estate, source)
    planned = parse_plans(plan, moment.twin)
    if planned and picture is not None:
        raise UsageError("--picture beside --plan; expected: one of the two")
    answer = what_if(moment, settings, factors, hours * 3600, plan=planned)
    if picture is not None:
        draw_answer(picture, answer)
    emit(answer_document(answer), as_json=json_)
