"""For `mqtwin acts run --exec "python3 eda.py URL TOKENFILE"`: give a request to the webhook of eda-rulebook.yml.

The rulebook says by `mqtwin acts result` what became of it; until then it is `unknown`, which is what is known.
"""

import sys
import urllib.request
from pathlib import Path

token = Path(sys.argv[2]).read_text(encoding="utf-8").strip()
headers = {"Content-Type": "application/json", "Authorization": f"Bearer {token}"}
request = urllib.request.Request(sys.argv[1], sys.stdin.buffer.read(), headers)  # noqa: S310 -- the site's own address
with urllib.request.urlopen(request, timeout=30) as answer:  # noqa: S310 -- the same
    print(f"the rulebook has it ({answer.status})")
sys.exit(1)
