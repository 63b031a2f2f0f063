"""The console: a page in the browser about every store, fed by the topics that the job writes.

- `points`: usage over time, with a bound
- `model`: records folded into what the page shows, and the changes since a version
- `live`: the threads that read the topics, for the model and for what-if
- `app`: the web application
- `server`: the address, its protection, and the thread that serves it
- `static/`: the page
"""
