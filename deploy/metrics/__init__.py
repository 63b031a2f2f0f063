"""The Prometheus exporter: metrics from the topics and from the job's status file. Described in docs/surfaces.md."""
