"""Runs of an hour that show that nothing grows: `python -m tests.soak load` and `python -m tests.soak stores`."""
