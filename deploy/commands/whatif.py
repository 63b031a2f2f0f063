"""``mqtwin whatif``."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from deploy.options.common import Flag, KafkaOptions, Repeated, open_estate
from deploy.options.files import EstateFile, InputFile, InputFolder, OutputFile
from deploy.options.moment import MomentSource, open_moment, parse_plans, parse_set, parse_traffic
from deploy.show.planning import answer_document, check_picture, draw_answer
from deploy.show.terminal import emit
from twin.errors import UsageError
from twin.planning.whatif import what_if


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
