"""Prepared units of work: in doubt until their COMMIT or BACKOUT, also over a restart (docs/events.md).

"The document": WebSphere MQ internals, the phases of a restart.
"""

import pytest

from tests.support.store_driver import Open, State, StoreDriver

pytestmark = pytest.mark.usefixtures("side")
KINDS = pytest.mark.parametrize("kind", ["structure", "page_set", "queue_file"])


def open_store(kind: str, request: pytest.FixtureRequest) -> StoreDriver:
    driver: StoreDriver = request.getfixturevalue(kind)()
    return driver


def counts(state: State) -> tuple[int, int, int]:
    return state["messages"], state["uncommitted"], state["in_doubt"]


@KINDS
def test_a_prepared_unit_survives_a_restart_and_is_committed_after_it(
    kind: str, request: pytest.FixtureRequest
) -> None:
    """The document: "some prepared transactions ... we can subsequently commit or rollback the transactions"."""
    driver = open_store(kind, request)
    driver.put(uow="XA", persistent=True, count=3)
    driver.put(uow="OPEN", persistent=True)
    assert counts(driver.send("PREPARE", uow="XA")) == (4, 4, 3)
    assert counts(driver.send("RESTART", None)) == (3, 3, 3)
    assert counts(driver.send("COMMIT", uow="XA")) == (3, 0, 0)
    assert driver.get(count=3)["unmatched_gets"] == 0


@KINDS
def test_a_backout_ends_a_prepared_unit_after_a_restart(kind: str, request: pytest.FixtureRequest) -> None:
    driver = open_store(kind, request)
    driver.put(persistent=True)
    driver.get(uow="XA")
    driver.put(uow="XA", persistent=True)
    driver.send("PREPARE", uow="XA")
    assert counts(driver.send("RESTART", None)) == (2, 2, 2)
    assert counts(driver.send("BACKOUT", uow="XA")) == (1, 0, 0)
    assert driver.get()["messages"] == 0


@pytest.mark.parametrize("kind", ["page_set", "queue_file"])
def test_a_restart_takes_the_nonpersistent_messages_of_a_prepared_unit(
    kind: str, request: pytest.FixtureRequest
) -> None:
    driver = open_store(kind, request)
    for persistent in (False, True, False):
        driver.put(uow="XA", persistent=persistent)
    driver.put(persistent=False)
    driver.get(uow="XA")
    driver.send("PREPARE", uow="XA")
    assert counts(driver.send("RESTART", None)) == (1, 1, 1)
    assert counts(driver.send("COMMIT", uow="XA")) == (1, 0, 0)


@KINDS
def test_the_prepare_of_an_unknown_unit_changes_nothing_and_a_second_one_neither(
    kind: str, request: pytest.FixtureRequest
) -> None:
    driver = open_store(kind, request)
    driver.put(uow="A")
    assert counts(driver.send("PREPARE", uow="B")) == (1, 1, 0)
    assert counts(driver.send("PREPARE", uow="A", reason=2003)) == (1, 1, 0)
    assert counts(driver.send("PREPARE", uow="A")) == (1, 1, 1)
    assert counts(driver.send("PREPARE", uow="A")) == (1, 1, 1)
    driver.put(uow="A")
    assert driver.state()["in_doubt"] == 2
    assert counts(driver.send("COMMIT", uow="A", reason=2003)) == (0, 0, 0)


def test_undoing_writes_a_compensation_record_for_each_persistent_operation(queue_file: Open) -> None:
    """The document: "rolled back. This involves writing special undo log records called Compensation Log Records"."""
    driver = queue_file()
    driver.put(uow="U", persistent=True, count=5)
    driver.put(uow="U")
    assert driver.state()["log_records"] == 5
    assert driver.send("BACKOUT", uow="U")["log_records"] == 5 + 5 + 1
    driver.put(uow="V", persistent=True, count=2)
    assert driver.send("RESTART", None)["log_records"] == 11 + 2 + 2 + 1


def test_a_prepared_unit_is_not_undone_at_a_restart(queue_file: Open) -> None:
    driver = queue_file()
    driver.put(uow="U", persistent=True, count=2)
    driver.send("PREPARE", uow="U")
    assert driver.send("RESTART", None)["log_records"] == 2
    assert driver.send("COMMIT", uow="U")["log_records"] == 3
