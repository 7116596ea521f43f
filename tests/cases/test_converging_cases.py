"""Cases from public bug reports that concern GPU data, vendors, open pools and limits: numbers 17, 18, 19 and 21."""

from __future__ import annotations

from attrs import evolve

from engine.model.refusal import AcceleratorNotOffered, GpuPoolClosed, LimitReached
from tests.cases.shipped import Shipped, node_pool, pod, reasons

NVIDIA = "{key: karpenter.k8s.aws/instance-gpu-manufacturer, operator: In, values: [nvidia]}"
ON_DEMAND = "{key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}"
AMD64 = "{key: kubernetes.io/arch, operator: In, values: [amd64]}"


def family(*names: str) -> str:
    return f"{{key: karpenter.k8s.aws/instance-family, operator: In, values: [{', '.join(names)}]}}"


def test_17_a_cpu_pod_does_not_land_on_a_fractional_gpu_though_it_is_the_cheapest() -> None:
    shipped = Shipped(node_pool("gpu", family("g6f"), ON_DEMAND), node_pool("general", family("m6i"), ON_DEMAND))

    plan = shipped.plan(pod("web", cpu="1", memory="1Gi"))

    assert [launch.claim.node_pool for launch in plan.launches] == ["general"]


def test_17_a_fractional_gpu_is_no_whole_gpu() -> None:
    shipped = Shipped(node_pool("gpu", family("g6f"), ON_DEMAND))

    plan = shipped.plan(pod("llm", cpu="1", memory="1Gi", nvidia_com__gpu="1"))

    assert plan.launches == ()
    refusal = reasons(plan)["gpu"]
    assert isinstance(refusal, AcceleratorNotOffered)
    assert (refusal.resource, refusal.offered) == ("nvidia.com/gpu", ())


def test_17_a_type_without_a_price_is_never_bought() -> None:
    """p5e and trn2 have no on-demand price in us-east-1, so a missing price is a fact and not a bargain."""
    shipped = Shipped(node_pool("gpu", family("p5e"), ON_DEMAND))

    assert shipped.plan(pod("llm", cpu="1", nvidia_com__gpu="8")).launches == ()


def test_18_a_cpu_pod_waits_rather_than_open_a_gpu_node_and_the_lint_names_the_pool() -> None:
    team = "{key: team, operator: In, values: [ml]}"
    shipped = Shipped(node_pool("gpu", family("g5"), ON_DEMAND, team))

    plan = shipped.plan(pod("web", cpu="1", memory="1Gi"), pod("zero", cpu="1", memory="1Gi", nvidia_com__gpu="0"))

    assert plan.launches == ()
    for unplaced in plan.unplaced:
        assert [one.refusal for one in unplaced.refusals] == [GpuPoolClosed()]
    assert "gpu-pool-open" in {found.rule for found in shipped.lints()}


def test_18_a_request_of_zero_gpus_goes_to_the_cpu_pool() -> None:
    shipped = Shipped(node_pool("gpu", family("g5"), ON_DEMAND), node_pool("general", family("m6i"), ON_DEMAND))

    plan = shipped.plan(pod("zero", cpu="1", memory="1Gi", nvidia_com__gpu="0"))

    assert [launch.claim.node_pool for launch in plan.launches] == ["general"]


def test_18_a_pool_that_says_so_is_open_to_all_pods() -> None:
    opened = node_pool("gpu", family("g5"), ON_DEMAND).replace(
        "metadata: {name: gpu}", 'metadata: {name: gpu, annotations: {nodewright.dev/open-to-all-pods: "true"}}'
    )

    assert len(Shipped(opened).plan(pod("web", cpu="1", memory="1Gi")).launches) == 1


def test_19_the_wrong_vendors_gpu_is_named_with_the_family_that_carries_it() -> None:
    shipped = Shipped(node_pool("gpu", family("g4ad"), ON_DEMAND))

    refusal = reasons(shipped.plan(pod("llm", cpu="1", nvidia_com__gpu="1")))["gpu"]

    assert isinstance(refusal, AcceleratorNotOffered)
    assert (refusal.resource, refusal.offered, refusal.families) == ("nvidia.com/gpu", ("amd.com/gpu",), ("g4ad",))


def test_19_an_aws_accelerator_is_no_nvidia_gpu_either() -> None:
    refusal = reasons(Shipped(node_pool("gpu", family("inf2"), ON_DEMAND)).plan(pod("llm", nvidia_com__gpu="1")))["gpu"]

    assert isinstance(refusal, AcceleratorNotOffered)
    assert "aws.amazon.com/neuron" in refusal.offered


def test_21_a_limit_is_told_apart_from_a_lack_of_types() -> None:
    limited = node_pool("gpu", family("g5"), ON_DEMAND, spec='  limits: {nvidia.com/gpu: "1"}')
    shipped = Shipped(limited)
    first = shipped.plan(pod("llm-0", cpu="1", nvidia_com__gpu="1"))

    second = shipped.plan(pod("llm-1", cpu="3", memory="13Gi", nvidia_com__gpu="1"), document=_without_room(first))

    refusal = reasons(second)["gpu"]
    assert isinstance(refusal, LimitReached)
    assert (refusal.resource, refusal.limit, refusal.used, refusal.needed) == ("nvidia.com/gpu", 1, 1, 1)


def _without_room(plan: object) -> object:
    """The document of a plan whose only node is full: its claim can hold nothing more."""
    document = plan.document  # type: ignore[attr-defined]
    full = tuple(
        evolve(
            node_set, claims=tuple(evolve(claim, allocatable=type(claim.allocatable)()) for claim in node_set.claims)
        )
        for node_set in document.node_sets
    )
    return evolve(document, node_sets=full)
