"""``mqtwin act``: the dry run of an action."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter
from cyclopts.validators import Number

from deploy.options.common import Flag, KafkaOptions, open_estate
from deploy.options.files import EstateFile, InputFile
from deploy.options.moment import MomentSource, open_moment
from deploy.show.acts import proposal_document
from deploy.show.terminal import emit
from streams.log import configure_logging
from twin.errors import UsageError
from twin.estate import Estate
from twin.planning.proposals import Proposal, alert_of, propose
from twin.planning.whatif import moment_of
from twin.playback.replays import play
from twin.playback.samples import Alerts
from twin.records import read_alert_record
from twin.units import event_us

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
