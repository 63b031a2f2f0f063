"""What is sound but unwise, said once on standard error."""

from __future__ import annotations

import sys

from twin.estate import Estate


def warned(estate: Estate) -> Estate:
    """The estate, its warnings printed one a line."""
    for warning in estate.warnings:
        print(f"mqtwin: warning: {warning}", file=sys.stderr)
    return estate
