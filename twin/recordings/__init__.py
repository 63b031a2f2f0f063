"""Recordings: files of events, read, written and cut."""
