"""Java, its jars and class archives, and the embedded broker that runs on it."""
