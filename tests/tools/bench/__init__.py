"""`make bench`: what mqtwin costs, measured through the real broker, the real Spark and the real job."""
