"""The twins of a Python worker: cached, mirrored in files, and kept as pages in Spark's state store."""
