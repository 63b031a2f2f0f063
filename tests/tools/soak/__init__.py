"""Runs of an hour that show that nothing grows: `python -m tests.tools.soak load` (or `stores`)."""
