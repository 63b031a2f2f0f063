"""Options that name files: each says whether it is read or written, and what is written replaces nothing too early."""

from __future__ import annotations

import importlib
import inspect
import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Annotated, Any, NamedTuple, get_args, get_origin, get_type_hints

import pytest
from cyclopts import App, Parameter
from cyclopts.validators import Number

from deploy.cli import COMMANDS, main
from deploy.options.common import FileUse, check_files, open_secrets, option_name
from tests.support.traffic import lines_of, traffic, write_estate, write_lines
from twin.base.errors import UsageError


class Option(NamedTuple):
    """An option that names a file. path: parameters from the command's to the field of a class of options."""

    command: str
    function: Callable[..., Any]
    path: tuple[str, ...]
    use: FileUse | None
    is_many: bool

    @property
    def name(self) -> str:
        """The name of the option, or of the argument."""
        return option_name(self.path[-1], get_type_hints(self._holder(), include_extras=True)[self.path[-1]])

    def _holder(self) -> Any:
        """Return the function, or the class of options, that has the option."""
        hint = get_type_hints(self.function)[self.path[0]]
        return next((own for own in (hint, *get_args(hint)) if is_dataclass(own)), self.function)

    def values(self, path: Any) -> dict[str, Any]:
        """Return arguments of the command in which this option names a path."""
        value: Any = (path,) if self.is_many else path
        if len(self.path) == 2:
            holder = object.__new__(self._holder())
            for field in fields(holder):
                object.__setattr__(holder, field.name, value if field.name == self.path[1] else None)
            value = holder
        return {self.path[0]: value}


def functions() -> Iterator[tuple[str, Callable[..., Any]]]:
    """Yield each command and its function."""
    for command, (target, _) in COMMANDS.items():
        module, _, attribute = target.partition(":")
        command_object = getattr(importlib.import_module(module), attribute)
        if isinstance(command_object, App):
            names = [name for name in command_object if not name.startswith("-")]
            own = [(f"{command} {name}", command_object[name].default_command) for name in names]
            yield from ((name, function) for name, function in own if function is not None)
        else:
            yield command, command_object


def options_of(command: str, function: Callable[..., Any]) -> Iterator[Option]:
    hints = get_type_hints(function, include_extras=True)
    for name, parameter in inspect.signature(function).parameters.items():
        is_many = parameter.kind is inspect.Parameter.VAR_POSITIONAL
        for path, use, is_tuple in uses(hints[name], (name,)):
            yield Option(command, function, path, use, is_many or is_tuple)


def uses(
    annotation: Any, path: tuple[str, ...], use: FileUse | None = None
) -> Iterator[tuple[tuple[str, ...], FileUse | None, bool]]:
    """Yield what a parameter's type says of each file that it names: None where it says nothing."""
    if get_origin(annotation) is Annotated:
        inner, *extras = get_args(annotation)
        yield from uses(inner, path, next((extra for extra in extras if isinstance(extra, FileUse)), use))
    elif isinstance(annotation, type) and is_dataclass(annotation):
        for name, hint in get_type_hints(annotation, include_extras=True).items():
            yield from uses(hint, (*path, name))
    elif annotation is Path or (annotation is str and use is not None):
        yield path, use, False
    elif get_origin(annotation) is tuple:
        for place, own, _ in uses(get_args(annotation)[0], path, use):
            yield place, own, True
    else:
        for part in get_args(annotation):
            yield from uses(part, path, use)


OPTIONS = [option for command, function in functions() for option in options_of(command, function)]
OUTPUTS = [option for option in OPTIONS if option.use is not None and option.use.is_written]
PAIRS = [
    (output, other)
    for output in OUTPUTS
    for other in OPTIONS
    if other.command == output.command and other.use is not None and not other.use.is_written
]
KAFKA = ["--bootstrap-servers", "127.0.0.1:1"]
# A run of each command with outputs, whose input is mistyped; the output is added.
RUNS: Mapping[str, list[str]] = {
    "advise": ["QSG1/APP1", "--estate", "ESTATE", "--recording", "MISTYPED"],
    "collect": ["dds", "--estate", "MISTYPED", *KAFKA],
    "commission": ["--estate", "ESTATE", "--recording", "MISTYPED"],
    "estate import": ["smf:MISTYPED"],
    "import": ["smf", "MISTYPED", "--estate", "ESTATE"],
    "record": ["--kafka-file", "MISTYPED", *KAFKA],
    "replay": ["MISTYPED", "--estate", "ESTATE"],
    "report": ["--estate", "ESTATE", "--recording", "MISTYPED"],
    "share": ["MISTYPED", "--estate", "ESTATE"],
    "simulate": ["burst", "--estate", "MISTYPED"],
    "start": ["MISTYPED", "--no-console"],
    "stream": ["--estate", "MISTYPED", "--checkpoint", "ck", *KAFKA],
    "tune": ["--recording", "MISTYPED", "--estate", "ESTATE"],
    "warm": ["--recording", "MISTYPED", "--estate", "ESTATE"],
    "whatif": ["QSG1/APP1", "--estate", "ESTATE", "--recording", "MISTYPED"],
}
_NEEDED = {
    "share": ("--output", "other"),
    "import": ("--output", "other.ndjson"),
    "advise": (),
    "collect": ("--position", "other.json"),
}
_NO_INPUT = {  # commands without an input, and folders that are taken only if they are the command's own
    "demo": "tests/deploy/test_output_folder.py",
    "broker": "tests/deploy/test_broker.py",
    "checkpoint migrate": "tests/deploy/test_commands_checkpoint.py",
    "checkpoint relocate": "tests/streams/test_relocate.py",
    "checkpoint repartition": "tests/deploy/test_commands_checkpoint.py",
}


def by_name(option: Option) -> str:
    return f"{option.command} {option.name}"


@pytest.mark.parametrize("option", OPTIONS, ids=by_name)
def test_an_option_that_names_a_file_says_what_is_done_with_it(option: Option) -> None:
    assert option.use is not None, f"{by_name(option)}: a Path; expected: a type of deploy/options/common.py"


def test_an_option_whose_help_is_of_a_file_is_one() -> None:
    named = {(option.command, option.path[0]) for option in OPTIONS}
    missing = []
    for command, function in functions():
        text = inspect.getdoc(function) or ""
        names = re.findall(r"^ +(\w+): (?:Recordings?|Files?|Folder|Estate file)\b", text, re.MULTILINE)
        missing += [(command, name) for name in names if (command, name) not in named]
    assert missing == [("stream", "checkpoint")]  # a URI


@pytest.mark.parametrize(("output", "other"), PAIRS, ids=by_name)
def test_an_output_is_not_a_file_that_is_read(output: Option, other: Option, tmp_path: Path) -> None:
    own, link = tmp_path / "own", tmp_path / "link"
    own.touch()
    link.symlink_to(own)
    if output.use is not None and output.use.is_folder:
        return  # files in it have names of their own, see test_output_folder.py
    value = own if other.use is not None and other.use.path_of is Path else f"smf:{own}"
    with pytest.raises(UsageError, match=re.escape(f"{link} is an input (")):
        check_files(output.function, {**other.values(value), **output.values(link)})


@pytest.mark.parametrize("output", OUTPUTS, ids=by_name)
def test_a_mistyped_input_leaves_what_an_output_was(
    output: Option, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    if output.command in _NO_INPUT:
        assert (Path(__file__).parents[2] / _NO_INPUT[output.command]).is_file()
        return
    monkeypatch.chdir(tmp_path)
    write_estate(tmp_path)
    old = tmp_path / ("old.svg" if output.path[-1] == "picture" else "old.ndjson")
    is_folder = output.use is not None and output.use.is_folder
    if is_folder:
        old.mkdir()
    content = old / "estate.toml" if is_folder else old
    content.write_text("{}\n")
    estate = next(path.name for path in tmp_path.iterdir() if path.suffix == ".toml")
    words = [word.replace("ESTATE", estate).replace("MISTYPED", "no.ndjson") for word in RUNS[output.command]]
    named = [str(old)] if output.path[-1] == "out" else [output.name, str(old)]
    if output.command in _NEEDED and output.name not in _NEEDED[output.command]:
        named += _NEEDED[output.command]
    before = sorted(os.walk(tmp_path))
    assert main([*output.command.split(), *words, *named]) == 2
    assert "no.ndjson" in capsys.readouterr().err
    assert content.read_text() == "{}\n"
    assert sorted(os.walk(tmp_path)) == before


@pytest.mark.parametrize("name", ["alerts", "state", "dlq"])
def test_a_recording_is_not_replaced_by_what_is_made_of_it(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    estate, recording = write_estate(tmp_path), write_lines(tmp_path / "r.ndjson", lines_of(traffic(5)))
    link = tmp_path / "hard.ndjson"
    link.hardlink_to(recording)
    before = recording.read_bytes()
    for path in (recording, link, estate):
        assert main(["replay", str(recording), "--estate", str(estate), f"--{name}", str(path)]) == 2
        assert f"--{name} {path} is an input (" in capsys.readouterr().err
    assert recording.read_bytes() == before


_ASKED = ("request", "list", "approve", "withdraw", "result")  # of mqtwin acts
SECRETS = {
    ("alertmanager", "--token-file"),
    *((command, option) for command in ("collect", "start") for option in ("--password-file", "--client-key")),
    ("collect", "--token-file"),
    *((command, f"--{kind}-file") for command in _ASKED for kind in ("password", "token")),
    ("share", "--key-file"),
    ("console", "--oidc-secret-file"),
    ("console", "--site-kafka-file"),
    ("console", "--tls-key"),  # its --token-file is refused, not warned about
    ("mcp", "--tls-key"),  # the same
}


def test_files_of_secrets_that_others_may_read_are_warned_about(tmp_path: Path) -> None:
    """Every file of a password, a token or a key, and the files of Kafka settings, which have such."""
    path = tmp_path / "secret"
    path.write_text("word\n")
    own = [option for option in OPTIONS if option.use is not None and option.use.is_secret]
    others = {(option.command.split()[-1], option.name) for option in own if option.name != "--kafka-file"}
    assert others == SECRETS
    assert len({option.command for option in own if option.name == "--kafka-file"}) > 8
    for option in own:
        for mode, is_open in ((0o600, False), (0o640, True), (0o604, True)):
            path.chmod(mode)
            text = f"{option.name} {path} can be read by others (mode {mode:o}); expected: chmod 600 {path}"
            assert open_secrets(option.function, option.values(path)) == [text] * is_open
    path.unlink()
    assert open_secrets(own[0].function, own[0].values(path)) == []


def test_texts_that_an_estate_names_are_read_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "qm.mqsc").write_text("DEFINE QLOCAL(A)\n")
    estate = tmp_path / "estate.toml"
    estate.write_text('schema = 1\n[queue_manager.QM01]\n[[import]]\nmqsc = "qm.mqsc"\nqueue_manager = "QM01"\n')
    output = tmp_path / "qm.mqsc"
    assert main(["replay", "r.ndjson", "--estate", str(estate), "--alerts", str(output)]) == 2
    assert f"--alerts {output} is an input (--estate, which {estate} names)" in capsys.readouterr().err


def test_two_outputs_are_two_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = str(tmp_path / "out")
    assert main(["replay", "r.ndjson", "--estate", "e.toml", "--alerts", output, "--state", output]) == 2
    assert f"--alerts and --state {output}: two outputs in one file" in capsys.readouterr().err


def test_alerts_of_another_replay_stay_if_no_event_is_accepted(tmp_path: Path) -> None:
    estate, recording = write_estate(tmp_path), write_lines(tmp_path / "r.ndjson", [b"junk"])
    alerts, letters = tmp_path / "alerts", tmp_path / "letters"
    alerts.write_text("earlier")
    letters.write_text("earlier")
    outputs = ["--alerts", str(alerts), "--dlq", str(letters)]
    assert main(["replay", str(recording), "--estate", str(estate), *outputs]) == 1
    assert alerts.read_text() == "earlier" and "not-json" in letters.read_text()


def test_devices_are_written(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    estate, recording = write_estate(tmp_path), write_lines(tmp_path / "r.ndjson", lines_of(traffic(5)))
    outputs = ["--alerts", "/dev/null", "--dlq", "/dev/null", "--state", "/dev/stdout"]
    assert main(["replay", str(recording), "--estate", str(estate), *outputs]) == 0
    assert '"store":"QSG1/APP1"' in capfd.readouterr().out
    assert Path("/dev/null").is_char_device()


# Options of numbers without bounds in their type: the command checks them, with these arguments beside.
_CHECKED = {
    "advise": ["QSG1/APP1", "--estate", "ESTATE", "--recording", "RECORDING"],
    "import": ["smf", "MISTYPED", "--estate", "ESTATE", "-o", "other.ndjson"],
    "collect": ["dds", "--estate", "ESTATE", "--position", "p", *KAFKA],
    "estate import": ["smf:MISTYPED"],
    "simulate": ["burst", "--estate", "ESTATE", "-o", "other.ndjson"],
    "start": ["MISTYPED"],
    "stream": ["--estate", "ESTATE", "--checkpoint", "ck", *KAFKA],
    "whatif": ["QSG1/APP1", "--estate", "ESTATE", "--recording", "RECORDING"],
}


def numbers() -> Iterator[tuple[str, str]]:
    """Yield the options of numbers with a fraction that have no upper bound in their type."""
    for command, function in functions():
        for name, hint in get_type_hints(function, include_extras=True).items():
            for option, own in floats(name, hint):
                validators = [extra.validator for extra in own if isinstance(extra, Parameter)]
                bounds = [bound for some in validators for bound in (some if isinstance(some, tuple) else (some,))]
                if not any(isinstance(bound, Number) and (bound.lte or bound.lt) for bound in bounds):
                    yield command, option


def floats(name: str, hint: Any, extras: tuple[Any, ...] = ()) -> Iterator[tuple[str, tuple[Any, ...]]]:
    if hint is float:
        yield f"--{name.strip('_').replace('_', '-')}", extras
    elif get_origin(hint) is Annotated:
        inner, *own = get_args(hint)
        yield from floats(name, inner, (*extras, *own))
    elif isinstance(hint, type) and is_dataclass(hint):
        for field, own in get_type_hints(hint, include_extras=True).items():
            yield from floats(field, own)
    else:
        for own in get_args(hint):
            yield from floats(name, own, extras)


@pytest.mark.parametrize("value", ["inf", "nan", "1e300", "-1", "1e-300"])
@pytest.mark.parametrize(("command", "option"), list(numbers()))
def test_a_number_that_is_none_is_refused_at_once(
    command: str, option: str, value: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    estate, recording = write_estate(tmp_path), write_lines(tmp_path / "r.ndjson", lines_of(traffic(5)))
    names = {"ESTATE": str(estate), "RECORDING": str(recording), "MISTYPED": "no.ndjson"}
    words = [names.get(word, word) for word in _CHECKED[command]]
    if command == "import-trace" and option != "--service-rate":
        words += ["--service-rate", "5"]
    if (command, option, value) in _SMALLEST:
        return
    assert main([*command.split(), *words, option, value]) == 2
    (line,) = [line for line in capsys.readouterr().err.splitlines() if "warning: " not in line]
    assert option.strip("-").replace("-", " ") in line.replace("-", " ") or "horizon" in line
    assert "expected: " in line or "Must be" in line


_SMALLEST = {("simulate", "--rate", "1e-300")}  # as good as 0


@pytest.mark.parametrize(("content", "status"), [("schema = 1\n", 2), ('{"a":1}\n{"a":2}\n', 2)])
def test_a_status_file_replaces_nothing_else(
    content: str, status: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "status.json"
    path.write_text(content)
    assert main(["stream", "--estate", "e", "--checkpoint", "c", *KAFKA, "--status-file", str(path)]) == status
    assert f"--status-file {path} has something else; expected: " in capsys.readouterr().err
    assert path.read_text() == content


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everything")
def test_an_output_that_may_not_be_written_is_refused_at_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "alerts"
    path.touch(mode=0o444)
    assert main(["replay", "r.ndjson", "--estate", "e.toml", "--alerts", str(path)]) == 2
    assert f"--alerts {path} may not be written; expected: " in capsys.readouterr().err
