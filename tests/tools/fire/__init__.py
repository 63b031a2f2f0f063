"""Runs of the job under faults that a seed chooses, held against replay: `make fire`."""
