"""The moving parts: Kafka and Spark in, Kafka out, recordings, subscribers.

* :mod:`streams.job` builds and runs the streaming query; :mod:`streams.session` gives it a SparkSession.
* :mod:`streams.decode_stage` turns Kafka records into blocks, :mod:`streams.processor` applies them to the twin of
  their store, :mod:`streams.mirror` keeps the twin's arrays between batches, :mod:`streams.state_pages` writes them to
  the state store.
* :mod:`streams.topics` creates topics and reads their limits, :mod:`streams.preflight` looks at every executor before
  the start, :mod:`streams.progress` logs what each batch did.
* :mod:`streams.checkpoint_guard` claims and checks the checkpoint before the start, :mod:`streams.checkpoint_files`
  says what is damaged in it, :mod:`streams.stored_state` reads its state without Kafka.

The twin itself is in :mod:`twin`: nothing here changes what it computes.
"""
