"""``mqtwin advise``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Annotated

import msgspec
from cyclopts import Parameter
from cyclopts.validators import Number

from deploy.options.common import KafkaOptions
from deploy.options.files import EstateFile, InputFile, InputFolder, OutputFile, OutputFolder, texts_of
from deploy.options.moment import MomentSource, open_twin, parse_traffic
from deploy.show.advice_page import report
from deploy.show.leaving import draw_leaving, print_leaving
from deploy.show.planning import check_picture, print_advice, print_members
from deploy.show.terminal import print_warnings
from twin.conditions import full_reason
from twin.errors import UsageError
from twin.estate import Estate, load_estate
from twin.estate.model import policy_name_of
from twin.estate.settings import changed_config, changed_text
from twin.outputs import Draft, is_same_file, write_output
from twin.planning.advise import Advice, Plan, Promise
from twin.planning.advise import advise as find_advice
from twin.planning.leave_scm import FacilitySizes, Leaving, facility_sizes, leave_scm_now
from twin.planning.leave_scm import leave_scm as find_leaving
from twin.planning.members import advise_members
from twin.planning.moment import moment_of
from twin.planning.proof import Proof, prove
from twin.planning.scm_watch import Course, Trial
from twin.planning.whatif import Traffic
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


class LeavingRecord(msgspec.Struct, frozen=True, kw_only=True):
    """Structures that give up SCM and their coupling facilities, as `mqtwin advise --leave-scm --json` prints them."""

    structures: list[Leaving]
    facilities: tuple[FacilitySizes, ...]


def advise(
    store: str | None = None,
    /,
    *,
    estate: EstateFile,
    leave_scm: Annotated[tuple[str, ...], Parameter(consume_multiple=True, negative="", show_default=False)] = (),
    recording: InputFile | None = None,
    time: Annotated[str | None, Parameter(name="--at")] = None,
    checkpoint: InputFolder | None = None,
    kafka: KafkaOptions | None = None,
    hours: float = 2.0,
    confidence: float = 0.9,
    margin: Annotated[float, Parameter(validator=Number(gte=0, lte=50))] = 10.0,
    traffic: str = "",
    json_: Annotated[bool, Parameter(name="--json", negative="")] = False,
    html: OutputFile | None = None,
    picture: OutputFile | None = None,
    write: OutputFolder | None = None,
) -> None:
    """Find the smallest change that keeps a store from filling in the next hours. Nothing is changed.

    Where it is not full anyway, it prints what could be smaller. Each plan is tested by rolling the store forward.
    Where there is a recording, the whole of it is replayed as if the plan had been in effect from its beginning: what
    would be refused in it is enlarged or left out. Of a uniform cluster it says which members carry the load.

    With --leave-scm it says what structures need without storage class memory, so that the recording, or the next
    hours, go on as they did.

    Args:
        store: Name of the store, such as QSG1/APP1.
        estate: Estate file (TOML).
        leave_scm: Structures that give up storage class memory, instead of a store.
        recording: Recording that leads to the moment: .ndjson, .ndjson.zst or .arrow.
        time: Moment of the recording, RFC 3339; its end by default.
        checkpoint: Checkpoint folder of a stopped job, on this machine, instead of a recording.
        kafka: Kafka connection, instead of a recording: the last state of the store in the topics.
        hours: Hours within which the store must not be full.
        confidence: Share of all futures in which that must hold, 0.5 to 0.99.
        margin: Percent of structure and data sets that must stay free in the recording, with --leave-scm.
        traffic: Factors on the traffic, such as gets=0 for an outage of all getters.
        json_: Print JSON instead of text.
        html: File for a report with pictures, to hand on.
        picture: File for a picture of the recording before and after, with --leave-scm: .svg or .png.
        write: Folder for the texts of each plan: plan-1.toml, the changed estate; plan-1.mqsc and plan-1.cfrm.
    """
    source = MomentSource(recording=recording, time=time, checkpoint=checkpoint, kafka=kafka)
    promise, factors = Promise(hours=hours, confidence=confidence), parse_traffic(traffic)
    output = _Output(json_, html, write, picture)
    output.check()
    if (store is None) == (not leave_scm):
        raise UsageError("expected either a store, or --leave-scm with structures")
    if store is None:
        _advise_leaving(leave_scm, estate, source, promise, factors, margin, output)
    else:
        _advise_store(store, estate, source, promise, factors, output)


@dataclass(frozen=True, slots=True)
class _Output:
    """Where advice goes, beside the terminal; is_json: JSON goes there."""

    is_json: bool
    html: Path | None
    write: Path | None
    picture: Path | None

    def check(self) -> None:
        """Raise UsageError, before anything is replayed, if a file cannot be written."""
        if self.picture is not None:
            check_picture(self.picture)
        if self.write is not None and not self.write.absolute().parent.is_dir():
            raise UsageError(f"--write {self.write}; expected: a name in a folder that exists")


def _advise_store(
    store: str, described: Path, source: MomentSource, promise: Promise, factors: Traffic, output: _Output
) -> None:
    """Print and write the advice for a store."""
    if output.picture is not None:
        raise UsageError(f"--picture {output.picture}; expected: with --leave-scm, otherwise --html")
    estate = load_estate(described)
    print_warnings(estate.warnings)
    twin = open_twin(store, estate, source)
    if isinstance(twin, UniformClusterTwin):
        _advise_cluster(store, twin, factors, output)
        return
    moment, proofs, recording = moment_of(estate, twin), tuple[Proof, ...](), source.recording
    advice = find_advice(moment, promise, factors)
    if recording is not None and (advice.plans or advice.smaller):
        advice, proofs = prove(recording, moment, advice)
    name = "" if recording is None else recording.name
    if output.write is not None:
        write_plans(output.write, described, estate, store, advice.plans)
    if output.html is not None:
        text = report(advice, proofs, name, full_reason(estate.stores[store].kind))
        write_output(output.html, text)
    if output.is_json:
        replayed = [msgspec.convert(proof, ReplayedPlan, from_attributes=True) for proof in proofs]
        print(msgspec.json.encode(AdviceRecord(**msgspec.structs.asdict(advice), replayed=replayed)).decode())
        return
    print_advice(advice, proofs, name)


def _advise_cluster(store: str, twin: UniformClusterTwin, factors: Traffic, output: _Output) -> None:
    """Print which members of a uniform cluster carry the load."""
    if output.html is not None or output.write is not None:
        raise UsageError(f"{store} is a uniform cluster; expected: no --html and no --write, they are for storage")
    members = advise_members(twin, factors.puts)
    if output.is_json:
        print(msgspec.json.encode(members).decode())
    else:
        print_members(members)


def _advise_leaving(
    names: Sequence[str],
    described: Path,
    source: MomentSource,
    promise: Promise,
    factors: Traffic,
    margin: float,
    output: _Output,
) -> None:
    """Print and write the advice for structures that give up storage class memory."""
    if source.time is not None or output.html is not None:
        raise UsageError("expected no --at and no --html with --leave-scm, which takes the whole recording")
    if output.picture is not None and source.recording is None:
        raise UsageError(f"--picture {output.picture} without --recording; expected: a recording to draw")
    estate = load_estate(described)
    print_warnings(estate.warnings)
    leavings = [_leave_scm(name, estate, source, promise, factors, margin) for name in dict.fromkeys(names)]
    if output.write is not None:
        for leaving in leavings:
            folder = output.write / policy_name_of(leaving.store)
            write_plans(folder, described, estate, leaving.store, leaving.plans)
    if output.picture is not None:
        draw_leaving(output.picture, leavings)
    facilities = facility_sizes(estate, leavings)
    if output.is_json:
        record = LeavingRecord(structures=[_without_samples(own) for own in leavings], facilities=facilities)
        print(msgspec.json.encode(record).decode())
    else:
        print_leaving(estate, leavings, facilities, "" if source.recording is None else source.recording.name)


def _leave_scm(
    name: str, estate: Estate, source: MomentSource, promise: Promise, factors: Traffic, margin: float
) -> Leaving:
    """Return the advice for a structure, by a recording or for the next hours; arguments as of `advise`."""
    if source.recording is None:
        moment = moment_of(estate, open_twin(name, estate, source))
        return leave_scm_now(moment, promise, margin_pct=margin, traffic=factors)
    confidence = promise.confidence
    return find_leaving(source.recording, estate, name, margin_pct=margin, confidence=confidence, traffic=factors)


def _without_samples(leaving: Leaving) -> Leaving:
    """Return the advice without what pictures are drawn of."""
    trials = tuple(
        Trial(
            proof=msgspec.structs.replace(trial.proof, times=(), usage_pct=()),
            effect=trial.effect,
            course=Course(times=(), usage={}, refused=()),
        )
        for trial in leaving.trials
    )
    return msgspec.structs.replace(leaving, trials=trials)


def write_plans(folder: Path, described: Path, estate: Estate, store: str, plans: Sequence[Plan]) -> None:
    """Write the texts of each plan; the changed estate is read back and compared with the plan before it is written.

    Args:
        folder: where to write; it is made if it is not there.
        described: the estate file.
        estate: what it describes.
        store: the store.
        plans: those that are written.

    Raises:
        UsageError: the folder cannot be written, a file of it is read, or the estate file describes the store in a form
            that cannot be changed.
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
            raise UsageError(f"--write {folder} would replace {read}, which is read; expected: another folder")
    try:
        folder.mkdir(exist_ok=True, parents=True)
    except OSError as error:
        raise UsageError(f"--write {folder} cannot be written: {error.strerror}; expected: a folder") from None
    for path, plan in estates.items():
        with Draft(path) as draft:
            draft.file.write_text(changed_text(described, config, plan.settings, folder), encoding="utf-8")
            if load_estate(draft.file).stores[store] != changed_config(config, plan.settings):
                raise UsageError(
                    f"{path}: {store} is not that of the plan; expected: tables of its own in the estate file"
                )
    for path, text in texts.items():
        write_output(path, text)
