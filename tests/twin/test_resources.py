"""Resources as values: their text in records and on the page, and the schema of alerts."""

import json
import re
from pathlib import Path

import pytest

from twin.base.conditions import ENTRIES, OWNED_POOLS, SCM, Pool, Resource

SCHEMA = Path(__file__).parents[2] / "schemas" / "alert.schema.json"


@pytest.mark.parametrize("pool", list(Pool), ids=str)
def test_a_resource_is_read_from_its_text_which_the_schema_of_alerts_has(pool: Pool) -> None:
    resource = Resource(pool, "SYSTEM.A/B" if pool in OWNED_POOLS else "")
    assert Resource.parse(str(resource)) == resource
    pattern = json.loads(SCHEMA.read_bytes())["$defs"]["AlertData"]["properties"]["resource"]["pattern"]
    assert re.match(pattern, str(resource)) and (pool in OWNED_POOLS) == (re.match(pattern, pool) is None)


def test_the_text_of_a_resource_is_plain() -> None:
    assert (str(ENTRIES), type(str(ENTRIES))) == ("entries", str)
    assert str(Resource(Pool.SMDS, "QM01")) == "smds/QM01"
    assert Resource.parse("entries") == ENTRIES and Resource.parse("a foreign one") == Resource("a foreign one")


@pytest.mark.parametrize(
    ("resource", "label"),
    [
        (Resource(Pool.SMDS, "QM01"), "SMDS QM01"),
        (Resource(Pool.SOURCE, "QM01"), "source QM01"),
        (Resource(Pool.QUEUE, "ORDERS"), "queue/ORDERS"),
        (SCM, "SCM"),
        (ENTRIES, "entries"),
    ],
    ids=str,
)
def test_a_resource_has_a_label(resource: Resource, label: str) -> None:
    assert resource.label == label
