"""Processes: restarts of the job, stop requests, children that end with their parent."""
