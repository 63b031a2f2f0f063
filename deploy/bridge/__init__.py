"""Delivery of alerts to Alertmanager and to a command. Described in docs/surfaces.md."""
