"""Damaged inputs for the parsers of feeds; `python -m tests.tools.fuzz` tries many."""
