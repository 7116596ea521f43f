"""A catalog's digest: of what can be bought and for how much, not of where we learnt it."""

from __future__ import annotations

import hashlib
import json

from attrs import evolve

from engine.model.catalog import Catalog, InstanceType


def catalog_digest(catalog: Catalog) -> Catalog:
    """The catalog with its digest: 64 hexadecimal digits, equal for catalogs that offer the same.

    ``source``, ``as_of`` and ``notes`` do not count. Written out by hand, since the general serialiser takes longer
    over a thousand offerings than all the rest of building a catalog.
    """
    content = {
        "region": catalog.region,
        "instance_types": [_type_content(each) for each in catalog.instance_types],
        "offerings": [
            (each.key, each.usd_per_hour.micros if each.usd_per_hour is not None else None)
            for each in catalog.offerings
        ],
        "zone_ids": dict(catalog.zone_ids),
        "ebs": [
            dict(catalog.ebs_usd_per_gib_month),
            dict(catalog.ebs_usd_per_provisioned_iops_month),
            catalog.ebs_usd_per_extra_iops_month,
            catalog.ebs_usd_per_extra_throughput_mib_month,
        ],
    }
    canonical = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return evolve(catalog, digest=hashlib.sha256(canonical.encode()).hexdigest())


def _type_content(each: InstanceType) -> list[object]:
    # Name, architecture, CPU, memory, accelerator name and bandwidth are in the labels too.
    return [
        dict(each.labels),
        dict(each.accelerators),
        each.memory_bytes,
        each.is_accelerated,
        each.accelerator_memory_bytes,
        each.local_nvme_bytes,
        each.max_pods,
        each.efa_interfaces,
    ]
