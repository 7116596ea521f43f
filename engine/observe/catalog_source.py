"""The catalog's facts from the files that the package ships."""

from __future__ import annotations

from importlib import resources

from engine.catalog.data import EBS_FILE, TYPES_FILE, ZONES_FILE, CatalogData, parse_catalog_data


def read_catalog_data() -> CatalogData:
    """The shipped facts: no network, a few milliseconds."""
    folder = resources.files("engine.catalog") / "data"
    types, zones, ebs = ((folder / name).read_bytes() for name in (TYPES_FILE, ZONES_FILE, EBS_FILE))
    return parse_catalog_data(types, zones, ebs)
