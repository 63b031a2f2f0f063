"""Helpers of the tests: drivers of stores, estates, workloads, traffic, brokers."""
