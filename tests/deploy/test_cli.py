from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from deploy import cli
from deploy.cli import main
from deploy.options.common import KafkaOptions, parse_settings
from deploy.show.terminal import merged, print_line
from streams.host.signals import StopRequestedError, raise_on_stop
from twin.base.errors import MqtwinError, UsageError

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def command(monkeypatch):
    """Return a function that replaces ``mqtwin doctor``, without tracebacks."""
    monkeypatch.setenv("MQTWIN_DEBUG", "0")
    return lambda function: monkeypatch.setattr("deploy.commands.doctor.doctor", function)


def raising(error: BaseException):
    def doctor() -> None:
        raise error

    return doctor


def test_help_names_every_command_and_loads_neither_spark_nor_kafka():
    program = (
        "import sys; from deploy.cli import main\n"
        "try: main(['--help'])\nfinally: print('loaded:', *{name.partition('.')[0] for name in sys.modules})"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    text, _, loaded = done.stdout.rpartition("loaded:")
    assert all(f" {name} " in text for name in cli.COMMANDS)
    assert not {"pyspark", "confluent_kafka", "kafka", "numba", "pyarrow"} & set(loaded.split())


@pytest.mark.parametrize("name", ["collect", "estate"])
def test_commands_without_a_twin_load_no_stores(name):
    """A collector runs for months beside the queue managers: they would cost it memory, and a third of a second."""
    program = f"import sys, deploy.commands.{name}; print('twin.stores' in sys.modules)"
    assert subprocess.check_output([sys.executable, "-c", program], cwd=ROOT, text=True).strip() == "False"


def test_help_groups_every_command_by_what_it_is_for(capsys):
    assert sorted(name for names in cli.JOBS.values() for name in names) == sorted(cli.COMMANDS)
    assert main(["--help"]) == 0
    text = capsys.readouterr().out
    words = [word for job, names in cli.JOBS.items() for word in (f"─ {job} ─", *(f"│ {name} " for name in names))]
    places = [text.index(word) for word in words]
    assert places == sorted(places)


def test_every_command_can_be_loaded_and_explains_itself(capsys):
    for name in cli.COMMANDS:
        assert main([name, "--help"]) == 0
        assert f"mqtwin {name}" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["borker"], "borker: no such command; expected: "),
        (["broker", "--prot", "1"], "broker: Unknown option: --prot"),
        (["broker", "--listen", "many"], "--listen"),
        (["broker", "--listen", "127.0.0.1:70000"], "HOST:PORT"),
        (["broker", "--listen"], "--listen"),
        (["broker", "here"], "broker: here: one argument too many"),
        (["broker", "--data", "/proc/nowhere"], "/proc/nowhere"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_wrong_use_is_one_line_and_exit_status_2(arguments, complaint, capsys):
    assert main(arguments) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("mqtwin: ") and printed.err.count("\n") == 1
    assert complaint in printed.err


@pytest.mark.parametrize(
    ("error", "status", "line"),
    [
        (
            UsageError("estate.toml, line 3: size: '4X':\n a size is right"),
            2,
            "estate.toml, line 3: size: '4X': a size is right",
        ),
        (MqtwinError("the broker ended"), 1, "the broker ended"),
        (KeyError("offld1_th"), 1, "KeyError: 'offld1_th' (--debug shows where)"),
    ],
    ids=["wrong input", "failed while running", "a defect"],
)
def test_an_error_is_one_line_and_its_exit_status(command, capsys, error, status, line):
    command(raising(error))
    assert main(["doctor"]) == status
    assert capsys.readouterr().err == f"mqtwin: {line}\n"


@pytest.mark.parametrize("arguments", [["--debug", "doctor"], ["doctor", "--debug"]], ids=" ".join)
def test_debug_shows_the_traceback_before_the_line(command, capsys, arguments):
    command(raising(MqtwinError("the broker ended")))
    assert main(arguments) == 1
    printed = capsys.readouterr().err
    assert printed.startswith("Traceback ") and printed.endswith("\nmqtwin: the broker ended\n")


def test_ctrl_c_ends_with_130(command, capsys):
    command(raising(KeyboardInterrupt()))
    assert main(["doctor"]) == 130
    assert capsys.readouterr().err == ""


def test_a_reader_that_goes_away_is_no_error():
    program = "from deploy.cli import main; import sys; sys.exit(main(['doctor']))"
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, stdout=write, stderr=subprocess.PIPE, check=False)
    os.close(write)
    assert (done.returncode, done.stderr) == (141, b"")


def test_the_first_stop_signal_stops_and_the_second_does_not_disturb():
    before = signal.getsignal(signal.SIGTERM)
    stopped = []

    def stopped_twice():
        with raise_on_stop():
            try:
                os.kill(os.getpid(), signal.SIGTERM)
            finally:
                os.kill(os.getpid(), signal.SIGTERM)
                stopped.append("cleanly")

    with pytest.raises(StopRequestedError):
        stopped_twice()
    assert stopped == ["cleanly"]
    assert signal.getsignal(signal.SIGTERM) is before


def test_kafka_options_give_the_settings_of_a_client():
    options = KafkaOptions(bootstrap_servers="a:9092,[::1]:9093", kafka=("sasl.password=a=b", "x=1"))
    assert options.topic_prefix == "mqtwin"
    assert options.client() == {"bootstrap.servers": "a:9092,[::1]:9093", "sasl.password": "a=b", "x": "1"}


@pytest.mark.parametrize(
    "wrong",
    [
        {"bootstrap_servers": "localhost"},
        {"bootstrap_servers": "localhost:9092,"},
        {"bootstrap_servers": "localhost:99999"},
        {"bootstrap_servers": "a:1", "topic_prefix": "so so"},
        {"bootstrap_servers": "a:1", "topic_prefix": ""},
        {"bootstrap_servers": "a:1", "kafka": ("security.protocol",)},
        {"bootstrap_servers": "a:1", "kafka": ("=SSL",)},
    ],
    ids=str,
)
def test_kafka_options_that_cannot_be_right_are_refused(wrong):
    with pytest.raises(UsageError):
        KafkaOptions(**wrong)


def test_a_setting_that_is_none_is_not_repeated_for_it_may_be_a_secret(command, capsys):
    def doctor(*, kafka_options: KafkaOptions) -> None:
        print(kafka_options)

    command(doctor)
    assert main(["doctor", "--bootstrap-servers", "a:1", "--kafka", "x=1", "--kafka", "S3cretPw"]) == 2
    assert capsys.readouterr() == ("", "mqtwin: --kafka number 2 has no =; expected: --kafka KEY=VALUE\n")


def test_settings_of_a_file_give_way_to_those_of_the_command_line(tmp_path, capsys):
    path = tmp_path / "kafka.properties"
    path.write_text("client.id=file\nacks=all\nbootstrap.servers=other:1\nssl.key.password=hush\n")
    path.chmod(0o600)
    from_options = ("client.id=line", "config.providers=env")
    options = KafkaOptions(bootstrap_servers="a:1", kafka=from_options, kafka_file=path)
    settings = options.client()
    assert (settings["client.id"], settings["acks"], settings["bootstrap.servers"]) == ("line", "all", "a:1")
    assert settings["ssl.key.password"] == f"${{mqtwin:{path}:ssl.key.password}}"
    assert settings["config.providers"] == "env,mqtwin"
    assert capsys.readouterr().err == ""
    path.chmod(0o640)
    KafkaOptions(bootstrap_servers="a:1", kafka_file=path)
    assert f"warning: --kafka-file {path} can be read by others (mode 640)" in capsys.readouterr().err
    with pytest.raises(UsageError, match="none: No such file"):
        KafkaOptions(bootstrap_servers="a:1", kafka_file=tmp_path / "none")


def test_the_last_setting_of_a_name_counts():
    assert parse_settings("--conf", ["a=1", " b =2", "a="]) == {"a": "", "b": "2"}


def test_kafka_options_are_read_from_the_command_line(command, capsys):
    def doctor(*, kafka_options: KafkaOptions) -> None:
        print(kafka_options.client(), kafka_options.topic_prefix)

    command(doctor)
    line = ["--bootstrap-servers", "a:1", "--kafka", "x=1", "--topic-prefix", "p", "--kafka", "y=2=3"]
    assert main(["doctor", *line]) == 0
    assert capsys.readouterr().out == "{'bootstrap.servers': 'a:1', 'x': '1', 'y': '2=3'} p\n"
    assert main(["doctor"]) == 2
    assert "--bootstrap-servers" in capsys.readouterr().err
    assert main(["doctor", "--bootstrap-servers", "a"]) == 2
    assert capsys.readouterr().err == "mqtwin: --bootstrap-servers a; expected: HOST:PORT, such as localhost:9092\n"


@pytest.mark.parametrize(
    "arguments",
    [["stream", "--estate", "estate.toml", "--checkpoint", "checkpoint", "--bootstrap-servers", "a:1"], ["broker"]],
    ids=" ".join,
)
def test_a_cache_that_cannot_be_written_is_one_line_that_says_what_to_do(arguments, tmp_path):
    pytest.importorskip("confluent_kafka")
    described = 'schema = 1\n[queue_manager.QM1]\n[page_set."QM1/0"]\npages = 100\n'
    (tmp_path / "estate.toml").write_text(described)
    arguments = [str(tmp_path / word) if word in ("estate.toml", "checkpoint") else word for word in arguments]
    done = subprocess.run(
        [sys.executable, "-m", "deploy", *arguments],
        cwd=ROOT,
        env=os.environ | {"MQTWIN_CACHE": "/proc/none", "MQTWIN_DEBUG": "0"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout) == (2, "")
    *_, line = done.stderr.splitlines()  # warnings about the estate may come before
    assert line.startswith("mqtwin: the cache folder /proc/none cannot be written (")
    assert line.endswith("): set MQTWIN_CACHE to a writable folder")


def test_a_long_line_is_wrapped_between_words_on_a_terminal_and_whole_elsewhere(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    line = "mqtwin: QSG1/APP1: its data sets are not described and none of them offloads anything at all"
    print_line(line)
    assert capsys.readouterr().err == f"{line}\n"
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    print_line(line)
    printed = capsys.readouterr().err
    assert len(printed.splitlines()) == 3 and max(map(len, printed.splitlines())) <= 40
    assert printed.split() == line.split()


def test_what_a_merged_warning_asks_for_is_one_real_table():
    names = [f"QSG1/APPL{number:02d}" for number in range(20)]
    warnings = [f'{name}: the data sets of QM01 are not described; describe [smds."{name}/QM01"]' for name in names]
    (line,) = merged(warnings)
    assert line.startswith("QSG1/APPL00, QSG1/APPL01, ")
    assert line.endswith(' and 12 more: the data sets of QM01 are not described; describe [smds."QSG1/APPL00/QM01"]')


def test_warnings_that_differ_in_a_name_only_are_one_line():
    alike = [f"QM01/PS{number:02d}: cannot expand" for number in range(10)]
    others = [f"QSG1/APP{number}: no queue of the estate is in it" for number in range(3)]
    together = ", ".join(f"QM01/PS{number:02d}" for number in range(8))
    assert merged([*alike[:5], *others, "CF01: too small", *alike[5:]]) == [
        f"{together} and 2 more: cannot expand",
        *others,
        "CF01: too small",
    ]
