"""State of a store: its arrays, the tables in them, and the rows of queues and queue managers."""
