"""``mqtwin advise``."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Annotated

import msgspec
from cyclopts import Parameter
from cyclopts.validators import Number

from deploy.options.common import Flag, KafkaOptions, Repeated, open_estate
from deploy.options.files import EstateFile, InputFile, InputFolder, OutputFile, OutputFolder, texts_of
from deploy.options.moment import MomentSource, open_twin, parse_plans, parse_set, parse_traffic
from deploy.show.planning import advice_document, members_document
from deploy.show.terminal import emit
from twin.conditions import full_reason
from twin.errors import UsageError
from twin.estate import Estate, load_estate
from twin.estate.settings import changed_config, changed_text
from twin.outputs import Draft, is_same_file, write_output
from twin.planning.advise import Advice, Plan, Promise, advise_members
from twin.planning.advise import advise as find_advice
from twin.planning.proof import Proof, prove
from twin.planning.whatif import moment_of
from twin.stores.uniform_cluster import UniformClusterTwin


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
