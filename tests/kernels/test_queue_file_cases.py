"""Cases of queue files that random workloads hardly ever reach."""

import pytest

from tests.kernels.proof import check_equal_states
from tests.naive.private_estates import queue_file
from tests.support.workloads import START_US, Workload

pytestmark = pytest.mark.uncompiled


def test_what_comes_back_to_the_baseline_is_in_the_file() -> None:
    """A put that a held get takes gives the baseline its message back, after the file was truncated."""
    queue = {"qmgr": "QM01", "queue": "A.QUEUE"}
    measured = {"blocks_nonpersistent": 30, "messages": 10}
    events = [
        {"time": START_US, "qmgr": "QM01", "op": "MEASURE", "store": "QM01/A.QUEUE", "measured": measured},
        {"time": START_US, "op": "GET", **queue},
        {"time": START_US, "op": "CLEAR", **queue},
        {"time": START_US, "op": "PUT", "length": 148, **queue},
    ]
    check_equal_states(Workload(queue_file(default_q_buffer_size=0), {}, events), every=1)
