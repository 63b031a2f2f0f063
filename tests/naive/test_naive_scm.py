"""Bytes in storage class memory, as the oracle counts them. Cases worked by hand: tests/cases/stores/scm.events."""

from tests.naive.pools import elements_of_length, pools_of_size
from tests.naive.scm import bytes_of

GIB = 1024**3


def test_the_sum_of_what_is_in_scm_is_in_blocks_of_4_kb() -> None:
    assert bytes_of(0, 0) == 0
    assert bytes_of(1, 2) == 4096
    assert bytes_of(5, 11) == 4096
    assert bytes_of(5, 12) == 8192


def test_5_gb_of_2_kb_messages_fit_into_4_gb_with_4_gb_of_scm_beside_it() -> None:
    """The published case of Q Replication at the end of the load: the structure and SCM hold all messages."""
    pools = pools_of_size(4 * GIB, 6, {"scm_max_size": 4 * GIB})
    messages, elements = 5 * GIB // 2048, elements_of_length(2048)
    in_scm = messages - min(pools.entries, pools.elements // elements)
    assert pools_of_size(4 * GIB, 6, {"scm_max_size": None}).elements // elements < messages
    assert 3.9 * GIB < bytes_of(in_scm, elements * in_scm) <= 4 * GIB
