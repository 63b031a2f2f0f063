"""Bridges from the alerts topic to Alertmanager and to a webhook. Described in docs/surfaces.md."""
