"""A structure as a statement of a CFRM policy, which `twin.estate.cfrm` reads.

Source: [IBM: z/OS MVS Setting Up a Sysplex, CFRM parameters for administrative data utility].
"""

from __future__ import annotations

from twin.estate.model import Structure
from twin.units import KIB, format_size


def activation(structure: str, policy: str | None = None) -> str:
    """Return the steps by which a change of the CFRM policy takes effect [IBM: APAR II08695].

    Args:
        structure: its name in the policy.
        policy: name of the policy; None: not known.
    """
    return (
        f"run IXCMIAPU with it, activate it by SETXCF START,POLICY,TYPE=CFRM,POLNAME={policy or '...'}, then"
        f" SETXCF START,REBUILD,STRNAME={structure}"
    )


def structure_statement(config: Structure) -> str:
    """Return the STRUCTURE statement of what the estate knows of a policy; sizes are rounded up to KB."""
    parts = [f"STRUCTURE NAME({config.policy_name}) SIZE({_size(config.size)})"]
    if config.init_size is not None:
        parts.append(f"INITSIZE({_size(config.init_size)})")
    if config.scm_max_size is not None:
        parts.append(f"SCMALGORITHM(KEYPRIORITY1) SCMMAXSIZE({_size(config.scm_max_size)})")
    parts.append(f"FULLTHRESHOLD({config.full_threshold}) ALLOWAUTOALT({'YES' if config.allow_auto_alter else 'NO'})")
    if config.coupling_facility is not None:
        parts.append(f"PREFLIST({config.coupling_facility})")
    return "\n  ".join(parts)


def _size(size: int) -> str:
    return format_size(-(-size // KIB) * KIB)
