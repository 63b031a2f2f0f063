"""Planning: what-if, and advice that a recording proves."""
