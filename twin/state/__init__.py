"""The state of a store: its arrays, the tables in them, and which row belongs to which queue or queue manager."""
