"""The Spark query: its stages, its session, and the checks before its start."""
