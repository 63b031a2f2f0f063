"""Errors, units, conditions, listings, files that are written, hooks: for every room of the twin."""
