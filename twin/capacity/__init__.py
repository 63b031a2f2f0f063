"""Capacity: laws of structures and clusters, offload rules, and the statements that change a size."""
