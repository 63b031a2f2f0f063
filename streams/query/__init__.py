"""The Spark query: its stages, its session, and what is checked before it starts."""
