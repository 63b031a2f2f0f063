"""Collection of live feeds: pages from Kafka or HTTP, through a reader of `twin.feeds`, onto the events topic."""
