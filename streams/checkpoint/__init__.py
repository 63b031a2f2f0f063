"""Checks of a checkpoint before the job starts: its owner, its files, and its offsets in Kafka."""
