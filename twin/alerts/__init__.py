"""Alerts: episodes and their records, findings about a resource, the queues that fill it, and the texts."""
