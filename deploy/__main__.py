"""``python -m deploy`` is ``mqtwin`` where the command is not on the path."""

import sys

from deploy.cli import main

sys.exit(main())
