"""`make score`: simulate and score the test set, write docs/foresight.md, its appendix and pictures, and README.md.

While tuning: `python -m tests.tools.score --split tuning --cases 40 --no-pictures` prints tables; recordings
are kept in build/score/recordings, so that the next run only plays them. Only a whole run of the test set writes into
docs/ and README.md; any other writes into build/score/. A recording is kept by the hash of the code that makes it, so a
run simulates what another generator, or none, has made; `--fresh` simulates everything anew. What each part of the
model brings is a part of the appendix that only `--ablate` makes anew.
"""

from __future__ import annotations

import argparse
import functools
import sys
import time
from pathlib import Path

from rich.console import Console

from tests.tools.score import ablation, page, people, pictures, summary
from tests.tools.score.page import ABLATED, ABLATED_REAL
from tests.tools.score.people import WHOLE
from tests.tools.score.recordings import recordings_folder
from tests.tools.score.scenarios import STORIES
from tests.tools.score.targets import targets
from tests.tools.score.work import LOAD_SETS, CaseScore, Loads, cores, score_all, score_case, score_load, show_progress
from twin.base.errors import MqtwinError

ROOT = Path(__file__).resolve().parents[3]


def main() -> int:
    """The exit status."""
    arguments = _arguments()
    console = Console()
    whole = arguments.split == "test" and not arguments.only and arguments.first == 0 and arguments.cases >= WHOLE
    folder = recordings_folder(fresh=arguments.fresh)
    began = time.monotonic()
    numbers = list(range(arguments.first, arguments.first + arguments.cases))
    try:
        with show_progress(console, len(numbers)) as done:
            scores = score_all(score_case, numbers, arguments.split, folder, arguments.processes, done)
    except MqtwinError as error:
        print(f"mqtwin score: {error}", file=sys.stderr)
        return 1
    if arguments.only:
        scores = [score for score in scores if score.case.scenario in arguments.only]
    if not scores:
        print(f"mqtwin score: no case of {', '.join(arguments.only)} among {len(numbers)}", file=sys.stderr)
        return 1
    summary.show(console, scores, each=arguments.each)
    loads = _score_loads(console, arguments, folder)
    summary.show_targets(console, targets(scores, loads))
    if not arguments.no_pictures:
        docs = ROOT / "docs" if whole else ROOT / "build" / "score"
        ablations = _ablations(arguments, folder) if arguments.ablate else {}
        run = page.Run(
            "make score" if whole else f"python -m tests.tools.score {' '.join(sys.argv[1:])}",
            arguments.split,
            time.monotonic() - began,
            ablations,
        )
        pictures.draw(scores, loads, docs / "images")
        path = page.write(run, scores, docs, loads)
        if whole:
            people.write_readme(scores, ROOT / "README.md")
        console.print(f"{path.relative_to(ROOT)} written")
    simulating, playing = (sum(parts) / len(scores) for parts in zip(*(score.seconds for score in scores), strict=True))
    seconds = time.monotonic() - began
    console.print(
        f"{len(scores)} cases in {seconds:.0f} s; each {simulating:.1f} s simulating, {playing:.1f} s playing"
    )
    return 0


def _ablations(arguments: argparse.Namespace, folder: Path) -> dict[str, str]:
    """Return a table of what each part of the model brings, by what it was played on."""
    cases = {ABLATED: ablation.turning(folder)}
    if arguments.loads is not None and arguments.loads.is_dir():
        cases[ABLATED_REAL] = ablation.real(folder, arguments.loads)
    return {name: ablation.ablate(some, arguments.processes) for name, some in cases.items()}


def _score_loads(console: Console, arguments: argparse.Namespace, folder: Path) -> Loads:
    """Return the scores of real loads of the set of seeds by title, and print them; say why if there are none."""
    source: Path | None = arguments.loads
    if source is None or not source.is_dir():
        console.print(f"real loads: skipped, {'no --loads' if source is None else f'{source} is no folder'}")
        return {}
    scores: dict[str, list[CaseScore]] = {}
    for title, own in LOAD_SETS.items():
        if own.split != arguments.split:
            continue
        with show_progress(console, own.cases) as done:
            score_one = functools.partial(score_load, source=source, record=own.record)
            scores[title] = score_all(score_one, range(own.cases), own.split, folder, arguments.processes, done)
        summary.show_loads(console, title, scores[title], each=arguments.each)
    return scores


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.tools.score", description=__doc__)
    parser.add_argument("--split", choices=("tuning", "test"), default="test", help="which set of seeds")
    parser.add_argument("--cases", type=int, default=WHOLE, help=f"how many; by default {WHOLE}")
    parser.add_argument("--first", type=int, default=0, help="number of the first one")
    parser.add_argument("--only", action="append", choices=list(STORIES), help="this scenario; may be repeated")
    parser.add_argument("--loads", type=Path, help="folder of real counts, whose cases are scored as well")
    parser.add_argument("--ablate", action="store_true", help="play with each part of the model off, too")
    parser.add_argument("--each", action="store_true", help="a line for every case")
    parser.add_argument("--fresh", action="store_true", help="simulate anew what is kept on disk")
    parser.add_argument("--no-pictures", action="store_true", help="tables on the terminal only")
    parser.add_argument("--processes", type=int, default=cores(), help="by default one a core")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
