"""The console: a page in the browser about every store, fed by the topics that the job writes.

- `resources`: a state record as resources with used, total and unit
- `history`: usage over time, with a bound
- `model`: records folded into what the page shows, and the changes since a version
- `feed`: the thread that reads the topics
- `app`: the web application
- `server`: the address, its protection, and the thread that serves it
- `static/`: the page
"""
