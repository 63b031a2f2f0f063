"""Attributes of a structure, and how ALTER and REBUILD change them."""

from typing import Any

from twin.estate.model import Structure

ATTRIBUTES = (  # docs/estate.md
    "size",
    "init_size",
    "full_threshold",
    "allow_auto_alter",
    "scm_max_size",
    "scm_prestage_rate",
    "scm_prefetch_rate",
    "scm_read_us",
    "cf_level",
    "offload",
    "offld1_th",
    "offld1_sz",
    "offld2_th",
    "offld2_sz",
    "offld3_th",
    "offld3_sz",
    "ds_block",
    "ds_expand",
    "smds_prefix",
    "offload_min_length",
)
SIZES = ("size", "init_size", "scm_max_size", "offld1_sz", "offld2_sz", "offld3_sz", "ds_block")
UNITS = {"K": 1024, "M": 1024**2, "G": 1024**3, "T": 1024**4}

# They belong to the CFRM policy, which takes effect at a rebuild of the structure [assumed].
ONLY_AT_REBUILD = ("init_size", "scm_max_size", "coupling_facility")


def attributes_of(config: Structure) -> dict[str, Any]:
    """Return the attributes of a structure of the estate that change its storage."""
    return {name: getattr(config, name) for name in ATTRIBUTES}


def size_in_bytes(value: int | str | None) -> int | None:
    """Return a size in bytes, given as an integer or as text with K, M, G or T (powers of 1024); None means absent."""
    if value is None or isinstance(value, int):
        return value
    text = value.strip().upper()
    return int(text[:-1]) * UNITS[text[-1]] if text[-1] in UNITS else int(text)


def read_attributes(attributes: dict[str, Any]) -> dict[str, Any]:
    """Return the attributes of an ALTER or REBUILD event, with sizes in bytes."""
    return {name: size_in_bytes(value) if name in SIZES else value for name, value in attributes.items()}
