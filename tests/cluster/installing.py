"""An environment of its own over the real API server, for tests of what is installed in a cluster."""

from __future__ import annotations

import json
import uuid
from pathlib import Path
from typing import Any

import yaml
from attrs import frozen

from engine.model import labels as keys
from engine.reconcile.workspace import Workspace
from engine.sandbox.control_plane import Plane
from tests.cluster.api import Cluster
from tests.policy.texts import CLASS, POOL

PROJECT = Path(__file__).parents[2]


@frozen
class Project:
    """A project of one environment, named unlike any other: what it makes outside of namespaces carries its name."""

    root: Path
    environment: str
    plane: Plane

    @property
    def namespace(self) -> str:
        return f"nw-{self.environment}"

    @property
    def workspace(self) -> Workspace:
        return Workspace(self.root)

    @property
    def cluster(self) -> Cluster:
        """The cluster, seen from the namespace that the environment installs into."""
        return Cluster(self.plane, self.namespace)

    def asks_for(self, pools: dict[str, str] | None = None, **in_cluster: Any) -> None:
        """Write its stack file and its policies. ``pools`` are the images that each pool names, by pool."""
        stack = {
            "nodewright:region": "us-east-1",
            "nodewright:cluster": {
                "name": self.environment,
                "endpoint": self.plane.endpoint,
                "certificateAuthority": self.plane.certificate_authority,
                "serviceCidr": "10.0.0.0/24",
                "kubeconfig": str(self.plane.kubeconfig),
            },
            "nodewright:network": {"mode": "owned", "zones": {"us-east-1a": "use1-az1"}},
            # Nobody listens there: what is installed in a cluster asks nothing of AWS.
            "nodewright:endpoint": "http://127.0.0.1:9",
            "nodewright:backend": (self.root / "state").as_uri(),
            "nodewright:inCluster": {"namespace": self.namespace, **in_cluster},
        }
        (self.root / "stacks" / f"Pulumi.{self.environment}.yaml").write_text(yaml.safe_dump({"config": stack}))
        texts = [CLASS, *(_pool(name, images) for name, images in (pools or {"gpu": ""}).items())]
        (self.root / "policies" / "all.yaml").write_text("---\n".join(texts))


def project(folder: Path, plane: Plane) -> Project:
    for name in ("stacks", "policies", "state"):
        (folder / name).mkdir()
    (folder / "Pulumi.yaml").write_text("name: nodewright\nruntime: python\nstackConfigDir: stacks\n")
    (folder / "tools").symlink_to(PROJECT / "tools")
    made = Project(folder, f"in-{uuid.uuid4().hex[:8]}", plane)
    made.asks_for()
    return made


def _pool(name: str, images: str) -> str:
    annotations = {keys.PRE_PULL: images} if images else {}
    return POOL.replace("  name: gpu\n", f"  name: {name}\n  annotations: {json.dumps(annotations)}\n")
