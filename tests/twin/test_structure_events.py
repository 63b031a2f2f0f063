"""Memory of the gets held aside. The rules of events: tests/domain/test_messages.py."""

from tests.support.twin_driver import TwinDriver


def test_expired_gets_give_back_their_memory_and_stay_counted() -> None:
    driver = TwinDriver()
    for _ in range(20):
        driver.get(count=10, qmgr="QM01")
        driver.get(msgid="never")
        driver.wait(3_600)
    assert driver.state()["unmatched_gets"] == 20 * 11
    assert driver.twin.tables.store.scalars[0]["held_high"] <= 2 * 11
