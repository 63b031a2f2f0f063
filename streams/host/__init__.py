"""The machine: descriptors, memory, scratch directories, memory mappings and Spark's Java process."""
