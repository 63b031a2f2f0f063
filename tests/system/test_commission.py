"""`mqtwin commission` on a running job: what an expert would say of the site, from the topics and the status file."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pytest

from deploy.cli import main
from streams.kafka.publish import publish
from tests.support.measured import ending_now, simulate_measured, without_puts
from tests.system.harness import PATIENCE, Stream
from tests.system.job_process import Command, running
from twin.estate import Estate, load_estate
from twin.events import NDJSON
from twin.playback.commission import Commission, commission
from twin.playback.verdicts import Check, Fitness

pytestmark = [pytest.mark.system, pytest.mark.nightly]

OF_THE_SITE = {"coverage", "numbering", "units", "fidelity", "forecasts"}  # the others are of this machine


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with an estate, a recording that is measured every two minutes, and one that lacks puts."""
    folder = tmp_path_factory.mktemp("site")
    without_puts(simulate_measured(folder), folder / "bad.ndjson", 0.05)
    return folder


@contextmanager
def job_on(stream: Stream, site: Path, folder: Path, name: str) -> Iterator[tuple[Path, list[str]]]:
    """Run a job until it has applied a recording that ends now; give the recording and the options of the command."""
    status = folder / "status.json"
    stream.send([])  # makes the topics
    with running(Command(stream, site / "estate.toml", "--status-file", str(status), max_records=0)) as job:
        job.read_until("topics ready")
        recording, servers = ending_now(site / name, folder / name), {"bootstrap.servers": stream.servers}
        sent = publish(recording, stream.estate, servers, stream.topics, content_type=NDJSON).events
        done = 0
        while done < sent:
            done += job.read_until("batch")["events"]
        place = ["--bootstrap-servers", stream.servers, "--topic-prefix", stream.prefix, "--status-file", str(status)]
        yield recording, ["commission", "--estate", str(site / "estate.toml"), *place]


def asked(command: list[str], capsys: pytest.CaptureFixture[str]) -> Commission:
    capsys.readouterr()
    status = main([*command, "--json"])
    report = msgspec.json.decode(capsys.readouterr().out, type=Commission)
    assert status == (report.verdict == Fitness.UNFIT)
    return report


def of_the_site(report: Commission) -> list[Check]:
    """Return the checks that do not depend on the machine."""
    return [check for check in report.checks if check.subject in OF_THE_SITE]


def test_a_job_that_hears_everything_is_fit(
    site: Path, tmp_path: Path, new_stream: Callable[[Estate], Stream], capsys: pytest.CaptureFixture[str]
) -> None:
    stream = new_stream(load_estate(site / "estate.toml"))
    with job_on(stream, site, tmp_path, "good.ndjson") as (recording, command):
        report = asked(command, capsys)
    assert {check.verdict for check in of_the_site(report)} == {Fitness.FIT}
    assert of_the_site(report) == of_the_site(commission(recording, stream.estate))
    assert all(own.share == 1.0 for store in report.stores for own in store.fidelity)
    assert report.job is not None and report.job.latency is not None
    assert 0 < report.job.latency.p50_s <= report.job.latency.p99_s < PATIENCE
    assert report.job.behind == 0 and report.job.beat_age_s is not None and report.job.beat_age_s < 60
    assert {"descriptors of the JVM", "bytes of memory"} <= {use.noun for use in report.job.limits or ()}


def test_a_job_that_misses_a_twentieth_of_the_puts_is_not_fit_and_says_which(
    site: Path, tmp_path: Path, new_stream: Callable[[Estate], Stream], capsys: pytest.CaptureFixture[str]
) -> None:
    stream = new_stream(load_estate(site / "estate.toml"))
    with job_on(stream, site, tmp_path, "bad.ndjson") as (recording, command):
        report = asked(command, capsys)
    assert report.verdict == Fitness.UNFIT
    unfit = {check.subject: check for check in report.checks if check.verdict == Fitness.UNFIT}
    assert unfit.keys() & OF_THE_SITE == {"coverage", "numbering", "fidelity"}
    assert "found no message: their puts are missing" in unfit["coverage"].reason
    assert unfit["coverage"].remedy == "look for puts that are not reported"
    assert "elements matched in" in unfit["fidelity"].reason and "below" in unfit["fidelity"].reason
    assert of_the_site(report) == of_the_site(commission(recording, stream.estate))
