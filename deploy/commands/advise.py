"""``mqtwin advise``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import msgspec
from cyclopts import Parameter

from deploy.options.common import KafkaOptions
from deploy.options.moment import MomentSource, open_twin, parse_traffic
from deploy.show.advice_page import report
from deploy.show.planning import print_advice, print_members
from deploy.show.terminal import print_warnings
from twin.conditions import full_reason
from twin.errors import UsageError
from twin.estate import Estate, load_estate
from twin.estate.changed import changed_text
from twin.estate.settings import changed_config
from twin.planning.advise import Advice, Promise
from twin.planning.advise import advise as find_advice
from twin.planning.members import advise_members
from twin.planning.moment import moment_of
from twin.planning.proof import Proof, prove
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
    estate: Path,
    recording: Path | None = None,
    time: Annotated[str | None, Parameter(name="--at")] = None,
    checkpoint: Path | None = None,
    kafka: KafkaOptions | None = None,
    hours: float = 2.0,
    confidence: float = 0.9,
    traffic: str = "",
    json_: Annotated[bool, Parameter(name="--json", negative="")] = False,
    html: Path | None = None,
    write: Path | None = None,
) -> None:
    """Find the smallest change that keeps a store from filling in the next hours. Nothing is changed.

    Where it is not full anyway, it prints what could be smaller. Each plan is tested by rolling the store forward.
    Where there is a recording, the whole of it is replayed as if the plan had been in effect from its beginning: what
    would be refused in it is enlarged or left out. Of a uniform cluster it says which members carry the load.

    Args:
        store: Name of the store, such as QSG1/APP1.
        estate: Estate file (TOML).
        recording: Recording that leads to the moment: .ndjson, .ndjson.zst or .arrow.
        time: Moment of the recording, RFC 3339; its end by default.
        checkpoint: Checkpoint folder of a stopped job, on this machine, instead of a recording.
        kafka: Kafka connection, instead of a recording: the last state of the store in the topics.
        hours: Hours within which the store must not be full.
        confidence: Share of all futures in which that must hold, 0.5 to 0.99.
        traffic: Factors on the traffic, such as gets=0 for an outage of all getters.
        json_: Print JSON instead of text.
        html: File for a report with pictures, to hand on.
        write: Folder for the texts of each plan: plan-1.toml, the changed estate; plan-1.mqsc and plan-1.cfrm.
    """
    source = MomentSource(recording=recording, time=time, checkpoint=checkpoint, kafka=kafka)
    promise, factors = Promise(hours=hours, confidence=confidence), parse_traffic(traffic)
    for path in (html, write):
        if path is not None and not path.absolute().parent.is_dir():
            raise UsageError(f"{path}; expected: a name in a folder that exists")
    loaded_estate = load_estate(estate)
    print_warnings(loaded_estate.warnings)
    twin = open_twin(store, loaded_estate, source)
    if isinstance(twin, UniformClusterTwin):
        if html is not None or write is not None:
            raise UsageError(f"{store} is a uniform cluster; expected: no --html and no --write, they are for storage")
        members = advise_members(twin, factors.puts)
        if json_:
            print(msgspec.json.encode(members).decode())
        else:
            print_members(members)
        return
    moment, proofs = moment_of(loaded_estate, twin), tuple[Proof, ...]()
    advice = find_advice(moment, promise, factors)
    if recording is not None and (advice.plans or advice.smaller):
        advice, proofs = prove(recording, moment, advice)
    name = "" if recording is None else recording.name
    reason = full_reason(loaded_estate.stores[store].kind)
    if write is not None:
        write_plans(write, estate, loaded_estate, advice)
    if html is not None:
        html.write_text(report(advice, proofs, name, reason), encoding="utf-8")
    if json_:
        replayed = [msgspec.convert(proof, ReplayedPlan, from_attributes=True) for proof in proofs]
        print(msgspec.json.encode(AdviceRecord(**msgspec.structs.asdict(advice), replayed=replayed)).decode())
        return
    print_advice(advice, proofs, name)


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
