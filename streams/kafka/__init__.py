"""Kafka: topics, settings and rights; publishing, recording and subscribing."""
