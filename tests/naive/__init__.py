"""The oracle: the slowest, most obvious twin of a CF structure, in plain Python. Read it as the specification.

Lists, dicts and linear searches only; every sum is taken anew, nothing is kept twice. The kernels must give the same
answers (``tests/kernels``). The sources of the rules are ``domain.md`` (how IBM MQ for z/OS stores messages) and
``contract.md`` (what others rely on); where both leave a choice, the rule says "our reading".

============== =============================================================================================
module         what it settles
============== =============================================================================================
sequence       which events are duplicates, how many are missing
clock          event time: late events, and events far in the future
pools          entries and elements of a structure, what a message costs, when an offload rule applies
smds           blocks and pages of a shared message data set, and how it expands
units          units of work: uncommitted puts and gets
held           gets that came before their message
attributes     ALTER and REBUILD
baseline       MEASURE: what the real system holds beyond the model
structure      all of it together: ``NaiveStructure.apply(event)`` and ``NaiveStructure.state()``
estates        tiny structures for tests, and the estate files that describe them
told           an oracle that is told events in a few words
============== =============================================================================================
"""

from tests.naive.structure import NaiveStructure

__all__ = ["NaiveStructure"]
