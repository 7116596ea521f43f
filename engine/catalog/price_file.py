"""An environment's own prices, as a table: ``region,instance_type,capacity_type,zone,usd_per_hour``."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import frozen

from engine.catalog.table import Row, read_table
from engine.model import labels
from engine.model.money import UsdPerHour

_COLUMNS = ("region", "instance_type", "capacity_type", "usd_per_hour")
# Reserved capacity is paid for already, so no price of it is read.
_CAPACITY_TYPES = (labels.ON_DEMAND, labels.SPOT)


@frozen
class PriceFile:
    """Dollars an hour by (instance type, capacity type, zone); the zone is empty where one price holds in all."""

    name: str
    prices: Mapping[tuple[str, str, str], UsdPerHour]

    def price(self, instance_type: str, capacity_type: str, zone: str, zone_id: str) -> UsdPerHour | None:
        """The zone's price, by its name or its id, else the region's; None when the file has neither."""
        for where in (zone, zone_id, ""):
            found = self.prices.get((instance_type, capacity_type, where))
            if found is not None:
                return found
        return None


def read_price_file(name: str, content: bytes, region: str) -> PriceFile:
    """The rows of one region. The zone column may be missing. Raises InvalidInput with file, line and column."""
    table = read_table(name, content, _COLUMNS)
    priced = (_priced(row) for row in table.rows if row.required("region") == region)
    return PriceFile(name=name, prices=dict(priced))


def _priced(row: Row) -> tuple[tuple[str, str, str], UsdPerHour]:
    key = (row.required("instance_type"), row.one_of("capacity_type", _CAPACITY_TYPES), row.text("zone"))
    return key, row.read("usd_per_hour", UsdPerHour.parse)
