"""Properties files are parsed as Java does, and errors quote nothing of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from streams.kafka.settings import read_properties, reference
from twin.base.errors import UsageError


@pytest.mark.parametrize(
    ("text", "properties"),
    [
        ("", {}),
        ("# a comment\n ! another\n\n \t\na=1", {"a": "1"}),
        ("a = 1 \r\nb: 2\rc 3\nd", {"a": "1 ", "b": "2", "c": "3", "d": ""}),
        ("a=b=c:d", {"a": "b=c:d"}),
        ("a=1\\\n   2\\\n\n b=3", {"a": "12", "b": "3"}),
        ("a=x\\\\\nb=y", {"a": "x\\", "b": "y"}),
        ("a\\ b\\=c=\\u00e9\\t\\q\\\\", {"a b=c": "é\tq\\"}),
        ("a=\\ud83d\\ude00é#!", {"a": "😀é#!"}),
        ("a=1\na=2", {"a": "2"}),
        ("a=1\\", {"a": "1"}),
        ("# ends with a backslash \\\na=1", {"a": "1"}),
    ],
)
def test_properties(tmp_path: Path, text: str, properties: dict[str, str]) -> None:
    path = tmp_path / "p"
    path.write_bytes(text.encode())
    assert read_properties(path) == properties


@pytest.mark.parametrize(
    ("content", "message"), [(b"ok=1\n=hush", "p:2: no key"), (b"a=hush\\u12", "p:1: "), (b"a=hush\xff", "UTF-8")]
)
def test_an_error_names_the_place_and_shows_no_value(tmp_path: Path, content: bytes, message: str) -> None:
    (tmp_path / "p").write_bytes(content)
    with pytest.raises(UsageError, match=message) as error:
        read_properties(tmp_path / "p")
    assert "hush" not in str(error.value)


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="none: No such file"):
        read_properties(tmp_path / "none")


def test_a_path_that_no_reference_can_hold() -> None:
    with pytest.raises(UsageError, match="without any of"):
        reference(Path("/etc/a:b"), "sasl.password")
