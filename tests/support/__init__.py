"""Helpers of the tests: estates, workloads, traffic, brokers."""
