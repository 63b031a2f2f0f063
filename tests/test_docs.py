"""Comparison of the docs with the code: names, tables, examples, the picture. The strict site build checks links."""

from __future__ import annotations

import ast
import importlib
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import jsonschema
import msgspec
import pytest
import yaml

from deploy.cli import COMMANDS, main
from deploy.metrics.catalogue import RESOURCE, STORE
from docs import make_feeds, make_gallery, make_llms, make_site
from docs.make_commands import MARK, arguments, commands, reference
from docs.make_numbers import passages
from docs.make_pictures import OUT as PICTURE
from docs.make_pictures import draw
from docs.passages import Passage
from kernels import pools
from streams.host.resources import RESOURCE_FIGURES
from streams.kafka.admin import HeldRecords
from streams.kafka.settings import for_librdkafka, for_spark, read_kafka_file
from streams.query.progress import batch_figures
from streams.query.rows import FIGURES, BatchReport
from tests.tools.score.baselines import BASELINES
from twin.base.conditions import Condition
from twin.estate import load_estate
from twin.estate.attributes import SECTIONS
from twin.events import CONTENT_TYPES, Decoder
from twin.events.fields import OPS
from twin.feeds import FORMATS
from twin.simulation import SCENARIOS, demo_estate

ROOT = Path(__file__).resolve().parents[1]
PAGES = {path.name: path.read_text(encoding="utf-8") for path in sorted((ROOT / "docs").glob("*.md"))}
TEXTS = PAGES | {name: (ROOT / name).read_text(encoding="utf-8") for name in ("README.md", "CHANGELOG.md")}
# What was removed has names that are no more.
TEXTS["CHANGELOG.md"] = re.sub(r"(?ms)^### Removed\n.*?(?=^## |\Z)", "", TEXTS["CHANGELOG.md"])
TEXTS["CONTRIBUTING.md"] = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def section(page: str, heading: str) -> str:
    """Return the text under a heading, up to the next one of its level or a higher one."""
    title = re.search(rf"^(#+) {re.escape(heading)}$", PAGES[page], re.MULTILINE)
    assert title, f"{page} has no heading {heading}"
    rest = PAGES[page][title.end() :]
    end = re.search(rf"^#{{1,{len(title[1])}}} ", rest, re.MULTILINE)
    return rest[: end.start()] if end else rest


def rows(text: str) -> list[list[str]]:
    """Return the cells of all table rows, without headings and their rules."""
    lines = text.splitlines()
    table = [line for line in lines if line.startswith("| ")]
    heads = {lines[number - 1] for number, line in enumerate(lines) if line.startswith("| ---")}
    return [
        [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        for line in table
        if line not in heads and not line.startswith("| ---")
    ]


def codes(cell: str) -> list[str]:
    """Return the texts between backticks."""
    return re.findall(r"`([^`]+)`", cell)


def first_codes(text: str) -> list[str]:
    """Return the names in the first column of the tables of a text."""
    return [name for row in rows(text) for name in codes(row[0])]


def examples(title: str) -> list[tuple[str, str]]:
    """Return (page, text) of the code blocks with that title."""
    block = re.compile(rf'^```\w+ title="{re.escape(title)}"\n(.*?)^```$', re.MULTILINE | re.DOTALL)
    return [(name, text) for name, page in PAGES.items() for text in block.findall(page)]


def schema(name: str) -> dict[str, Any]:
    loaded: dict[str, Any] = msgspec.json.decode((ROOT / "schemas" / f"{name}.schema.json").read_bytes())
    return loaded


# --- names in the texts ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", TEXTS)
def test_modules_and_functions_that_are_named_exist(name):
    for dotted in re.findall(r"`((?:kernels|twin|streams|deploy)(?:\.\w+)+)`", TEXTS[name]):
        if (ROOT / dotted.replace(".", "/")).suffix in {".toml", ".py"}:
            continue
        parts = dotted.split(".")
        for end in range(len(parts), 0, -1):
            try:
                value = importlib.import_module(".".join(parts[:end]))
            except ModuleNotFoundError:
                continue
            for part in parts[end:]:
                assert hasattr(value, part), f"{name} names {dotted}: there is no {part}"
                value = getattr(value, part)
            break
        else:
            pytest.fail(f"{name} names {dotted}, which cannot be imported")


@pytest.mark.parametrize("name", TEXTS)
def test_files_that_are_named_exist(name):
    named = re.findall(r"`((?:docs|deploy|streams|twin|kernels|schemas|tests)/[\w./-]*)`", TEXTS[name])
    named += re.findall(r"`([\w.-]+\.(?:toml|txt|yml|md))`", TEXTS[name]) if name == "CONTRIBUTING.md" else []
    for path in named:
        assert (ROOT / path).exists(), f"{name} names {path}"


def test_links_of_the_readme_lead_somewhere():
    for target in re.findall(r"\]\(([^)#]+)\)", TEXTS["README.md"]):
        assert (ROOT / target).exists(), target


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md"])
def test_make_targets_that_are_named_exist(name):
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([\w-]+):", makefile, re.MULTILINE))
    named = set(re.findall(r"make ([a-z]+(?:-[a-z]+)*)", TEXTS[name].replace("and make", "")))
    assert {"demo", "test"} & named
    assert named <= targets


@pytest.mark.parametrize("name", TEXTS)
def test_nothing_names_a_machine_or_a_package_registry(name):
    machine = "|".join(re.escape(f"{folder}/") for folder in (ROOT, Path.home()))
    assert not re.search(rf"{machine}|://[^\s`]*(?:/maven|/simple/|registry\.|nexus|artifactory)", TEXTS[name])


def test_the_files_to_change_for_a_kind_of_store_are_all_there():
    """A file that mentions queue files by name would have to mention a new kind, too."""
    text = section("architecture.md", "A new kind of store")
    listed = set(codes(text))
    own = {"kernels/queue_file.py", "twin/stores/queue_file.py", "twin/sizing/data_sets.py"}
    own |= {path.relative_to(ROOT).as_posix() for path in (ROOT / "twin/simulation/stories").glob("*.py")}
    mentioned = {
        path.relative_to(ROOT).as_posix()
        for room in ("kernels", "twin", "streams", "deploy")
        for path in (ROOT / room).rglob("*.py")
        if re.search(r"QueueFile|queue_file|QUEUE_FILE", path.read_text(encoding="utf-8"))
    }
    assert sorted(mentioned - own - listed) == []
    needed = [name for name in codes(text.partition("Where it applies")[0]) if "." in name]
    assert len(needed) <= 18  # beside its own files; what makes the schemas is one of them


# --- commands --------------------------------------------------------------------------------------------------------

# Options of docker compose, kubectl, of Kafka's own tools, of mqtwin itself, of pytest, of tests.tools.score.
OTHERS = {"--build", "--durations", "--bootstrap-server", "--topic", "--property", "--help", "--version", "--debug"}
OTHERS |= {"--previous", "--profile", "--from"}  # of kubectl, docker compose and uvx
OTHERS |= {"--month", "--words"}  # of tests.tools.score.planned
OTHERS |= {"--site-dir", "--strict", "--target", "--pins"}  # of mkdocs, mypy, pip, tests.tools.release.matrix
OTHERS |= {"--detach", "--tree"}  # of git, and of tests.checkpoints
OTHERS |= {"--collect-only", "--split", "--cases", "--no-pictures", "--write", "--loads", "--stores", "--open-files"}
OTHERS |= {"--minutes", "--plan", "--print", "--seeds", "--shorten"}  # of make fire
OTHERS |= {"--life", "--life-page", "--rate", "--found", "--keep"}  # of make fire and tests.tools.fuzz.guided
OTHERS |= {"--interval"}  # of make live-life
OTHERS |= {
    "--release",
    "--fire-minutes",
    "--only",
    "--skip",
    "--python",
}  # of make bench and releases


OPTIONS = {name for _, app in commands() for own in arguments(app) for name in own.names if name.startswith("--")}


def test_the_reference_of_commands_is_fresh():
    assert PAGES["commands.md"].partition(MARK)[2].strip() == reference().strip(), "expected: make commands"


def test_the_unit_for_systemd_is_the_one_that_is_shipped():
    (unit,) = re.findall(r"^```ini\n(.*?)\n```$", PAGES["operations.md"], re.DOTALL | re.MULTILINE)
    assert unit == '--8<-- "deploy/systemd/mqtwin.service"'
    assert (ROOT / "deploy/systemd/mqtwin.service").is_file()


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="no systemd here")
def test_systemd_takes_the_unit(tmp_path):
    unit = (ROOT / "deploy/systemd/mqtwin.service").read_text(encoding="utf-8")
    installed = tmp_path / "mqtwin.service"
    installed.write_text(unit.replace("/opt/mqtwin/.venv/bin/mqtwin", sys.executable), encoding="utf-8")
    command = ["systemd-analyze", "verify", "--man=no", str(installed)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("name", TEXTS)
def test_options_that_are_named_exist(name):
    named = set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", re.sub(r"--8<--|--add-modules\S*", "", TEXTS[name])))
    assert named <= OPTIONS | OTHERS


@pytest.mark.parametrize("name", TEXTS)
def test_commands_that_are_shown_exist(name):
    named = re.findall(r"^\$ (?:\.venv/bin/)?mqtwin (\S+)", TEXTS[name], re.MULTILINE)
    named += re.findall(r"`(?:\.venv/bin/)?mqtwin ([a-z][\w-]+)", TEXTS[name])
    assert set(named) <= set(COMMANDS)


def test_environment_variables_are_read():
    code = "".join(
        path.read_text(encoding="utf-8") for room in ("deploy", "kernels") for path in (ROOT / room).rglob("*.py")
    )
    for name in first_codes(section("commands.md", "Environment")):
        assert name in code, name


# --- events, alerts, states ------------------------------------------------------------------------------------------


def test_the_formats_of_feeds():
    assert first_codes(section("feeds.md", "Formats")) == list(FORMATS)
    offered = codes(section("feeds.md", "What do you have?"))
    for command, formats in (
        ("import", {name for name, format_ in FORMATS.items() if format_.is_file}),
        ("collect", {name for name, format_ in FORMATS.items() if format_.is_live}),
    ):
        prefix = f"mqtwin {command} "
        assert {name.removeprefix(prefix) for name in offered if name.startswith(prefix)} == formats


def test_the_fields_of_feeds():
    assert make_feeds.table() in PAGES["feeds-formats.md"]


def test_the_operations():
    named = [op.strip() for row in rows(section("events.md", "Operations"))[: len(OPS)] for op in row[0].split(",")]
    assert named == list(OPS)


def test_the_content_types():
    assert first_codes(section("events.md", "Records")) == list(CONTENT_TYPES)


def test_the_conditions_of_alerts():
    assert set(first_codes(section("alerts.md", "Conditions"))) == set(Condition)


@pytest.mark.parametrize(
    ("title", "kind"),
    [("event", "event"), ("alert", "alert"), ("state record", "state"), ("dead letter headers", "dead-letter")],
)
def test_examples_are_what_the_schemas_say(title, kind):
    shown_examples = examples(title)
    assert shown_examples
    for _, text in shown_examples:
        jsonschema.Draft202012Validator(schema(kind)).validate(msgspec.json.decode(text))


def test_examples_of_events_are_taken():
    lines = [line for _, text in examples("events") for line in text.splitlines()]
    whole = [text for _, text in examples("event")]
    assert lines
    assert whole
    for text in (*lines, *whole):
        jsonschema.Draft202012Validator(schema("event")).validate(msgspec.json.decode(text))
    decoded = Decoder(demo_estate()).json([text.encode() for text in (*lines, *whole)])
    assert [reject.detail for reject in decoded.rejects] == []


# --- metrics ---------------------------------------------------------------------------------------------------------


def test_the_labels_of_metrics_are_all_there():
    labels = {row[0]: codes(row[1]) for row in rows(section("surfaces.md", "Labels"))}
    assert tuple(labels["of a store"]) == STORE
    assert (*STORE, *labels["of a resource"]) == RESOURCE


# --- estate ----------------------------------------------------------------------------------------------------------


def test_the_example_of_an_estate_is_one(tmp_path):
    for title in ("estate.toml", "cfrm.txt", "qsg1.mqsc"):
        [(_, text)] = examples(title)
        (tmp_path / title).write_text(text, encoding="utf-8")
    estate = load_estate(tmp_path / "estate.toml")
    structure = estate.stores["QSG1/APP1"]
    assert not estate.warnings
    assert (structure.full_threshold, structure.offld1_th, structure.size) == (75, 60, 4 << 30)
    assert structure.queues == ("ORDERS",)


def test_the_attributes_of_tables_without_a_model():
    documented: dict[str, list[str]] = {}
    for row in rows(section("estate.md", "Tables and attributes")):
        if row[0] in SECTIONS:
            documented.setdefault(row[0], []).extend(codes(row[1]))
    assert set(documented) == {"queue_sharing_group", "host", "queue", "storage_class"}
    assert documented == {name: list(SECTIONS[name].attributes) for name in documented}


# --- how it works ----------------------------------------------------------------------------------------------------


def test_every_rule_of_the_storage_model_names_its_function():
    rules = rows(PAGES["storage-model.md"])
    with_source = [
        row for row in rules if len(row) == 4 and row[1].split(",")[0].split(";")[0] in {"published", "fitted"}
    ]
    assert len(with_source) > 20
    for row in with_source:
        if not re.fullmatch(r"[\d,]+", row[0]):
            assert codes(row[3]), row


def test_the_published_table_is_what_the_twin_computes():
    table = [row for row in rows(PAGES["storage-model.md"]) if re.fullmatch(r"[\d,]+", row[0])]
    assert len(table) == 7
    entries = (4 << 30) // (pools.ENTRY_BYTES + pools.ELEMENT_BYTES * pools.RATIO)
    for length, published, twin, off in table:
        fits = min(entries, entries * pools.RATIO // pools.elements_of(int(length.replace(",", ""))))
        assert twin == f"{fits:,}"
        assert off == f"{100 * (fits / int(published.replace(',', '')) - 1):+.1f} %"
        assert abs(float(off.rstrip(" %"))) < 2


def test_the_figures_of_a_batch():
    phases = ("triggerExecution", "addBatch", "queryPlanning", "latestOffset", "walCommit", "commitOffsets")
    progress = {
        "batchId": 1,
        "sources": [{"metrics": {"avgOffsetsBehindLatest": "0"}}],
        "stateOperators": [{}],
        "durationMs": dict.fromkeys(phases, 1),
    }
    report = msgspec.convert(progress, BatchReport)
    figures = [*batch_figures(report, HeldRecords()), *RESOURCE_FIGURES]
    text = section("operations-reference.md", "Logs and what to watch")
    assert first_codes(text) == figures
    line = msgspec.json.decode(re.search(r"```json\n(.*?)```", text, re.DOTALL)[1])
    assert set(line) == {"event", "level", "timestamp", *figures}
    assert set(FIGURES) <= set(line)


def test_the_settings_of_a_secured_kafka_are_understood_by_both_clients(tmp_path):
    [(page, text)] = examples("/etc/mqtwin/kafka.properties")
    assert page == "operations-reference.md"
    path = tmp_path / "kafka.properties"
    path.write_text(text.replace("sasl.password=...", "sasl.password=s3cret"), encoding="utf-8")
    settings = read_kafka_file(path)
    spark, librdkafka = for_spark(settings), for_librdkafka(settings)
    assert "s3cret" not in str(spark)
    reference = f"${{mqtwin:{path}:sasl.password}}"
    assert reference in spark["kafka.sasl.jaas.config"]
    assert reference.replace(str(tmp_path), "/etc/mqtwin") in PAGES["operations-reference.md"]
    assert librdkafka["sasl.username"] == "mqtwin"
    assert librdkafka["sasl.password"] == "s3cret"
    assert librdkafka["ssl.ca.location"] == "/etc/mqtwin/ca.pem"


def package(requirement: str) -> str:
    return re.match(r"[\w-]+", requirement)[0]


def test_every_dependency_has_its_reason():
    project, groups = PROJECT["project"], PROJECT["dependency-groups"]
    optional = project["optional-dependencies"].values()
    required = [*project["dependencies"], *(requirement for extra in optional for requirement in extra)]
    run = {package(requirement) for requirement in required} - {"mqtwin"}  # of which the extra `all` is made
    tools = {package(member) for group in groups.values() for member in group if isinstance(member, str)}
    assert set(first_codes(section("libraries.md", "What mqtwin runs on"))) == run
    assert set(first_codes(section("libraries.md", "What tests and tools need"))) == tools - run
    jars = (ROOT / "deploy" / "java" / "jars.toml").read_text(encoding="utf-8")
    for name in first_codes(section("libraries.md", "Java")):
        assert f":{name}" in jars


def test_the_scenarios():
    documented = {codes(row[0])[0]: row[1] for row in rows(section("recordings.md", "Simulate"))}
    assert documented == {name: kind.sentence for name, kind in SCENARIOS.items()}


def test_the_rules_beside_the_twin():
    assert first_codes(section("measuring.md", "The other rules")) == [rule.name for rule in BASELINES]


# --- messages, length, navigation ------------------------------------------------------------------------------------


def texts_of_the_code() -> list[str]:
    """Return every text of the code, as it is written, with "..." for each value."""

    def text(node: ast.AST) -> str:
        match node:
            case ast.Constant(value=str(own)):
                return own
            case ast.JoinedStr(values=parts):
                return "".join(map(text, parts))
            case ast.BinOp(left=left, op=ast.Add(), right=right):
                return text(left) + text(right)
        return "..."

    return [
        text(node)
        for room in ("kernels", "twin", "streams", "deploy")
        for path in (ROOT / room).rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, (ast.Constant, ast.JoinedStr, ast.BinOp))
    ]


def test_the_messages_of_the_lists_of_troubles_are_those_of_the_code():
    own = [
        code for name in ("troubleshooting.md", "recovery.md") for row in rows(PAGES[name]) for code in codes(row[0])
    ]
    messages = [code for code in own if " " in code and not code.startswith("mqtwin ")]
    assert len(messages) > 30
    written = texts_of_the_code()
    for message in messages:
        pattern = re.compile(".*".join(map(re.escape, re.split(r"\s*\.\.\.\s*", message))), re.DOTALL)
        assert any(pattern.search(text) for text in written), message


MAX_WORDS = 2_500
BEING_REWRITTEN = {"forecast.md"}


def nav_of(part: Any) -> list[str]:
    """Return the pages of a part of the navigation."""
    if isinstance(part, str):
        return [part]
    return [page for own in (part.values() if isinstance(part, dict) else part) for page in nav_of(own)]


def test_pages_that_are_read_are_short():
    """Code and what programs write does not count; references are looked up."""
    parts = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))["nav"]
    [reference_pages] = [nav_of(part) for part in parts if isinstance(part, dict) and "Reference" in part]
    for name in {page for page in nav_of(parts) if page in PAGES} - set(reference_pages) - BEING_REWRITTEN:
        text = re.sub(r"^```.*?^```$", "", PAGES[name], flags=re.MULTILINE | re.DOTALL)
        text = re.sub(r"<!-- make .*?<!-- end -->", "", text, flags=re.DOTALL)
        assert len(text.split()) <= MAX_WORDS, f"{name}: {len(text.split()):,} words; shorten or split it"


def test_the_list_for_programs_is_fresh():
    assert make_llms.PAGE.read_text(encoding="utf-8") == make_llms.text(), "expected: make commands"
    listed = re.findall(r"^- \[[^]]+\]\((.+?)\)", make_llms.text(), re.MULTILINE)
    assert set(listed) <= set(PAGES)
    assert len(listed) == len(set(listed)) > 40


def test_the_site_lists_its_versions_with_the_newest_first(tmp_path):
    for name in ("0.9", "0.10", "1.0"):
        (tmp_path / name).mkdir()
        (tmp_path / name / make_site.INDEX).touch()
    (tmp_path / "half").mkdir()  # a build that has not ended
    make_site.list_versions(tmp_path)
    listed = msgspec.json.decode((tmp_path / make_site.VERSIONS).read_bytes())
    assert [entry["version"] for entry in listed] == ["1.0", "0.10", "0.9"]
    assert [entry["aliases"] for entry in listed] == [["latest"], [], []]
    assert "url=1.0/" in (tmp_path / make_site.INDEX).read_text(encoding="utf-8")


# --- what runs -------------------------------------------------------------------------------------------------------


def test_the_readme_begins_with_three_short_claims_and_has_a_screen_and_a_half():
    claims = re.findall(r"^- (.*)$", TEXTS["README.md"].partition("```")[0], re.MULTILINE)
    assert len(claims) == 3
    assert all(len(re.findall(r"[\w'-]+|%", claim)) <= 20 for claim in claims)
    assert len(TEXTS["README.md"].splitlines()) <= 90


def test_the_example_of_the_readme_runs(tmp_path, monkeypatch, capsys):
    [program] = re.findall(r"^```python\n(.*?)^```$", TEXTS["README.md"], re.MULTILINE | re.DOTALL)
    monkeypatch.chdir(tmp_path)
    exec(compile(program, "README.md", "exec"), {})
    lines = capsys.readouterr().out.splitlines()
    assert " opened info elements " in lines[0]
    assert f"`{lines[-1]}`" in TEXTS["README.md"]


def test_the_options_of_the_pytest_plugin_are_all_there(pytestconfig):
    known = {name for name in pytestconfig._parser._inidict if name.startswith("mqtwin_")}
    assert set(first_codes(section("testing.md", "Recordings beside the estate"))) == known


@pytest.fixture(scope="module")
def written() -> list[Passage]:
    return passages()


@pytest.mark.parametrize("name", ["README.md", "quick-start.md", "alerts.md", "incidents.md"])
def test_the_numbers_of_a_page_are_those_of_the_run(name, written):
    """`make numbers` writes them."""
    own = [passage for passage in written if passage.page.name == name]
    assert own
    assert [passage.current() for passage in own] == [passage.text for passage in own]


QUICK = "smds-cannot-expand"  # of the incidents; the others take up to six seconds each


@pytest.mark.parametrize(
    "scenario",
    [name if name == QUICK else pytest.param(name, marks=pytest.mark.nightly) for name in make_gallery.incidents()],
)
def test_an_incident_of_the_gallery_is_that_of_its_run(scenario):
    """`make numbers` writes it."""
    passage = make_gallery.passage(scenario)
    assert passage.current() == passage.text


def test_the_gallery_has_incidents_in_which_the_twin_is_no_better():
    tables = re.findall(r"<!-- make numbers: \S+ -->\n(.*?)<!-- end -->", PAGES["gallery.md"], re.DOTALL)
    assert len(tables) == 8
    called = [[(row[1], row[3]) for row in rows(table) if "line" in row[1] or "page" in row[1]] for table in tables]
    assert sum(("**mqtwin, page**", "false") in own for own in called) >= 1
    assert sum(own[0][0] == "line" and own[0][1] != "false" for own in called) >= 2  # the line was first, and right


@pytest.mark.parametrize("name", PAGES)
def test_python_in_the_pages_can_be_read(name):
    for program in re.findall(r"^```python\n(.*?)^```$", PAGES[name], re.MULTILINE | re.DOTALL):
        for node in ast.walk(ast.parse(program)):
            if isinstance(node, ast.ImportFrom):
                source = (ROOT / node.module.replace(".", "/")).with_suffix(".py")
                if source.exists():
                    text = source.read_text(encoding="utf-8")
                    assert all(alias.name in text for alias in node.names), node.module
                else:
                    module = importlib.import_module(node.module)
                    assert all(hasattr(module, alias.name) for alias in node.names), node.module


def shown_sizes() -> dict[str, str]:
    """Return the examples of docs/sizing.md: arguments of `mqtwin`, and its output."""
    blocks = re.findall(
        r"^```console\n\$ mqtwin (size [^\n]*)\n(.*?)^```$", PAGES["sizing.md"], re.MULTILINE | re.DOTALL
    )
    return dict(blocks)


@pytest.mark.parametrize("arguments", shown_sizes())
def test_what_the_page_about_sizes_shows_is_what_is_printed(arguments, capsys, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")  # a table
    monkeypatch.setenv("TERM", "dumb")  # without colours, 80 columns
    assert main(arguments.split()) == 0
    printed = capsys.readouterr()
    lines = [line.rstrip() for line in (printed.out + printed.err).splitlines()]
    assert lines == [line.rstrip() for line in shown_sizes()[arguments].splitlines()]


def test_every_size_command_is_shown():
    plans = {name for name, _ in commands() if name.startswith("size ")}
    assert {" ".join(arguments.split()[:2]) for arguments in shown_sizes()} == plans


def test_the_picture_is_what_the_demo_shows():
    """`make numbers` draws it."""
    committed = PICTURE.read_text(encoding="utf-8")
    assert committed == draw()
    assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)", committed)


@pytest.mark.parametrize("path", sorted((ROOT / "docs" / "images").glob("*.svg")), ids=lambda path: path.name)
def test_pictures_load_nothing_from_the_network(path):
    loads = r"""(?:href|src)\s*=\s*["']\s*https?://|url\(\s*["']?https?://|@import|@font-face"""
    assert not re.search(loads, path.read_text(encoding="utf-8"))


def test_all_pages_are_in_the_navigation():
    navigation = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    for name in PAGES:
        assert re.search(rf"^ +(?:- )?{re.escape(name)}$", navigation, re.MULTILINE)
