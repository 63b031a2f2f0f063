"""Programs that measure the twin: no product, no part of the suite but for their own tests."""
