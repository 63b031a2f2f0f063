"""``python -m deploy``: the command ``mqtwin`` where it is not on the path."""

import sys

from deploy.cli import main

sys.exit(main())
