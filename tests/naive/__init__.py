"""The oracles: slow and obvious twins of stores, in plain Python. Read them as the specification.

They use only lists, dicts and linear searches, compute every sum anew and keep nothing twice. The kernels must give the
same results (``tests/kernels``). The rules are those of ``docs/storage-model.md`` and ``docs/events.md``, which name
their sources. A rule marked [assumed] is settled by neither.

=============== ============================================================================================
module          subject
=============== ============================================================================================
sequence        duplicates and gaps of event numbers
clock           event time, with late events and events far in the future
store           events of any store that holds messages: ``NaiveStore.apply(event)``, ``state()``
pools           entries and elements of a structure, cost of a message, offload rules
smds            blocks, pages and expansion of a shared message data set
units           units of work: uncommitted puts and gets
held            gets that arrived before their message
attributes      ALTER and REBUILD of a structure
fill            the fill model that a forecast rolls forward
regime          bins of the present flows, where their regime begins, and their sums
futures         futures drawn from a regime
baseline        MEASURE: the contents of the real system beyond the model
structure       a CF structure with its data sets
private         base of the stores of a single queue manager
page_set        a page set: packing, expansion
queue_file      a queue file: buffers, log, checkpoints, truncation
estates         tiny structures for tests, and the estate files that describe them
private_estates the same for tiny page sets and queue files
=============== ============================================================================================
"""

from tests.naive.page_set import NaivePageSet
from tests.naive.queue_file import NaiveQueueFile
from tests.naive.store import NaiveStore
from tests.naive.structure import NaiveStructure

__all__ = ["NaivePageSet", "NaiveQueueFile", "NaiveStore", "NaiveStructure"]
