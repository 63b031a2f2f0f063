"""The reader of state records: those of other versions and other kinds."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import msgspec
import pytest

from twin.estate.model import Site
from twin.records import STATES, StateRecord, UniformClusterState, read_state_record, resources_of
from twin.simulation import side_by_side_estate
from twin.stores.open import open_store

LATER = ("messages_estimated", "measured", "sizes_measured", "load", "usage_pct")  # than version 0.1.0, of a cluster


@pytest.fixture(scope="module")
def written() -> dict[str, bytes]:
    """Return a record of each kind of store in the estate, as a job writes it."""
    estate = side_by_side_estate()
    return {
        config.kind: msgspec.json.encode(open_store(estate, name).state()) for name, config in estate.stores.items()
    }


def without(value: bytes, *names: str) -> bytes:
    fields: dict[str, Any] = msgspec.json.decode(value)
    return msgspec.json.encode({name: field for name, field in fields.items() if name not in names})


def test_a_record_is_read_as_the_kind_that_it_names_and_written_the_same(written: dict[str, bytes]) -> None:
    for kind, value in written.items():
        record = read_state_record(value)
        assert type(record) is STATES[kind]
        assert msgspec.json.encode(record) == value


def test_a_record_of_a_named_site_says_so_and_is_else_what_it_was() -> None:
    estate = side_by_side_estate()
    named = replace(estate, site=Site(name="prod", zone="Europe/Berlin"))
    for name in estate.stores:
        value, unnamed = (msgspec.json.encode(open_store(own, name).state()) for own in (named, estate))
        assert read_state_record(value).site == "prod"
        assert without(value, "site") == unnamed and b'"site"' not in unnamed
        assert read_state_record(unnamed).site is msgspec.UNSET


def test_a_record_of_version_0_1_0_lacks_later_fields(written: dict[str, bytes]) -> None:
    fields = msgspec.json.decode(next(iter(written.values())))
    cluster = {"members": 1, "rate": 5.0, "capacity": 10.0, "members_needed": 1, "hosts": {}, "depth": 0}
    fields |= cluster | {"kind": "uniform_cluster", "late_reports": 0}
    record = read_state_record(without(msgspec.json.encode(fields), *LATER))
    assert isinstance(record, UniformClusterState)
    assert (record.messages_estimated, record.measured, record.sizes_measured) == (0, (), {})
    [capacity] = resources_of(record)
    assert (capacity.used, capacity.pct) == (None, None)


def test_a_record_of_another_kind_has_the_fields_of_every_kind_and_no_resource(written: dict[str, bytes]) -> None:
    fields = msgspec.json.decode(next(iter(written.values())))
    record = read_state_record(msgspec.json.encode(fields | {"kind": "tape", "reels": 3}))
    assert type(record) is StateRecord
    assert (record.kind, resources_of(record)) == ("tape", [])


def test_a_record_without_a_required_field_is_none(written: dict[str, bytes]) -> None:
    for value in written.values():
        with pytest.raises(msgspec.ValidationError, match="missing required field `gaps`"):
            read_state_record(without(value, "gaps"))
