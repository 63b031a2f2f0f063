"""The oracles: the slowest, most obvious twins of stores, in plain Python. Read them as the specification.

Lists, dicts and linear searches only; every sum is taken anew, nothing is kept twice. The kernels must give the same
answers (``tests/kernels``). The sources of the rules are ``domain.md`` (how IBM MQ for z/OS stores messages) and
``contract.md`` (what others rely on); where both leave a choice, the rule says "our reading".

=============== ============================================================================================
module          what it settles
=============== ============================================================================================
sequence        which events are duplicates, how many are missing
clock           event time: late events, and events far in the future
store           what every store that holds messages does with an event: ``NaiveStore.apply(event)``, ``state()``
pools           entries and elements of a structure, what a message costs, when an offload rule applies
smds            blocks and pages of a shared message data set, and how it expands
units           units of work: uncommitted puts and gets
held            gets that came before their message
attributes      ALTER and REBUILD of a structure
baseline        MEASURE: what the real system holds beyond the model
structure       a CF structure with its data sets
private         what the stores of one queue manager have in common
page_set        a page set: packing, expansion
queue_file      a queue file: buffers, log, checkpoints, truncation
estates         tiny structures for tests, and the estate files that describe them
private_estates tiny page sets and queue files likewise
told            oracles that are told events in a few words
=============== ============================================================================================
"""

from tests.naive.page_set import NaivePageSet
from tests.naive.queue_file import NaiveQueueFile
from tests.naive.store import NaiveStore
from tests.naive.structure import NaiveStructure

__all__ = ["NaivePageSet", "NaiveQueueFile", "NaiveStore", "NaiveStructure"]
