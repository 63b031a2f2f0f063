"""Checkpoints of releases, each in an archive, which this release has to open (`python -m tests.checkpoints`)."""
