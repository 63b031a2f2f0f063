"""Damaged inputs for the parsers of feeds; `python -m tests.fuzz` tries many."""
