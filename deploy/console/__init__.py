"""The console: a page in the browser about every store, fed by the topics that the job writes, or by a recording.

- `points`: usage over time, with a bound
- `model`: records folded into what the page shows, and the changes since a version
- `answers`: what-if and advice, as the twin of a store at a moment answers them
- `live`: the threads that read the topics, for the model and for these answers
- `past`: a recording instead of the topics, each of its moments
- `recorded`: a recorded night as one page, without a server
- `identity`: roles, the doors that need them, and names for which a proxy vouches
- `oidc`: sign-in by OpenID Connect; the only user of authlib
- `app`: the web application
- `server`: the address, its protection, and the thread that serves it
- `static/`: the page
"""

DEFAULT_PORT = 8470
