"""Events as a real API server takes them, and as `kubectl describe` looks for them."""

from __future__ import annotations

from attrs import evolve

from engine.actuate.event_recorder import EventRecorder
from engine.model.plan import Unplaced
from engine.model.pod import PodKey
from engine.model.refusal import LimitReached, PoolRefusal
from engine.observe.api_server import ApiServer
from engine.observe.pod_decoder import decode_pod
from engine.report.events import events_of
from tests import builders
from tests.cluster.api import Cluster
from tests.report import scenes

LIMIT = LimitReached("nvidia.com/gpu", limit=50, used=49, planned=1, needed=1)


def test_the_api_server_keeps_an_event_where_kubectl_describe_looks_for_it(cluster: Cluster) -> None:
    made = cluster.create(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "llm-1"},
            "spec": {
                "containers": [{"name": "main", "image": "llm:1"}],
                "nodeSelector": {"nowhere": "to-be-found"},
            },
        }
    )
    pod = decode_pod(made)
    unplaced = Unplaced(PodKey(cluster.namespace, "llm-1"), (PoolRefusal("gpu-core", LIMIT),))
    plan = evolve(scenes.empty_plan(), unplaced=(unplaced,))
    recorder = EventRecorder(ApiServer(str(cluster.plane.kubeconfig)), "sandbox")

    for _ in range(2):
        recorder.record(events_of(builders.snapshot(pods=[pod]), plan))

    assert recorder.failures == 0
    ours = [event for event in cluster.list("Event") if event["reportingComponent"] == "nodewright.dev/nodewright"]
    assert [(event["reason"], event["type"], event["message"]) for event in ours] == [
        ("LimitReached", "Warning", "gpu-core: limit nvidia.com/gpu 50 reached (49 used, 1 planned, needs 1)")
    ]
    involved = ours[0]["involvedObject"]
    assert (involved["kind"], involved["name"], involved["uid"]) == ("Pod", "llm-1", made["metadata"]["uid"])


def test_an_event_on_a_node_is_kept_too(cluster: Cluster) -> None:
    plan = evolve(scenes.plan(), unplaced=(), launches=(), placements=())
    held = next(kept for kept in plan.kept if kept.claim == "gpu-elastic-00031")
    name = f"held-{cluster.namespace}"
    plan = evolve(plan, kept=(evolve(held, node=name),), removals=())
    recorder = EventRecorder(ApiServer(str(cluster.plane.kubeconfig)), "sandbox")

    recorder.record(events_of(builders.snapshot(nodes=[builders.node(name)]), plan))

    assert recorder.failures == 0
    told = [each for each in Cluster(cluster.plane, "default").list("Event") if each["involvedObject"]["name"] == name]
    assert [(event["reason"], event["message"]) for event in told] == [
        ("DisruptionBlocked", "could go, but budget 10% is used up (2 of 2)")
    ]
