"""``python -m deploy``: the command ``mqtwin`` where it is not on the path."""

import sys

try:
    from twin.base.installed import main
except ImportError as error:  # a package of another distribution: one line here, too
    print(f"mqtwin: {error}", file=sys.stderr)
    sys.exit(2)

sys.exit(main())
