"""The machine: descriptors and memory, scratch directories, memory mappings and Spark's Java process."""
