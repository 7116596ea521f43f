"""No number, price, type or name is ever cut off, however narrow the screen."""

from __future__ import annotations

import io
from datetime import timedelta

import pytest
from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console, RenderableType

from engine.model.money import UsdPerHour
from engine.model.plan import Launch, LaunchReason, LimitUse
from engine.model.pod import PodKey
from engine.model.refusal import LostOffering
from engine.model.snapshot import CloudFacts
from engine.report.outcome_report import render_destruction
from engine.report.plan_report import render_plan
from engine.report.status_report import render_status
from engine.report.tables import table
from tests import builders
from tests.builders import G5_12XLARGE, G5_XLARGE, usd
from tests.report import scenes
from tests.report.golden_text import printed

READ_AT = scenes.NOON + timedelta(seconds=3)
INFERENCE = builders.node_pool("gpu-inference-large")
WIDTHS = st.integers(min_value=60, max_value=140)
PRICES = st.integers(min_value=1, max_value=12_345_670_000).map(lambda micros: UsdPerHour(micros))


def in_words(text: str) -> set[str]:
    return set(text.split())


@settings(max_examples=30, deadline=None)
@given(width=WIDTHS, nodes=st.integers(min_value=1, max_value=138), price=PRICES)
def test_the_status_shows_every_count_price_type_and_capacity_whole(width: int, nodes: int, price: UsdPerHour) -> None:
    claims = [
        evolve(builders.claim(f"gpu-{number:05}", G5_12XLARGE, pool=INFERENCE), usd_per_hour=price)
        for number in range(nodes)
    ]
    seen = builders.snapshot(document=builders.document(*claims))

    text = printed(render_status(seen, scenes.POLICY, scenes.CATALOG, now=READ_AT), width)

    cost = str(UsdPerHour(price.micros * nodes)).removesuffix("/h").replace("$", "")
    assert {"gpu-inference-large", str(nodes), "g5.12xlarge", "on-demand", f"0/{4 * nodes}", cost} <= in_words(text)


@settings(max_examples=30, deadline=None)
@given(width=WIDTHS, price=PRICES, extra=PRICES)
def test_the_plan_shows_every_count_price_type_and_capacity_whole(
    width: int, price: UsdPerHour, extra: UsdPerHour
) -> None:
    launches = tuple(
        Launch(
            claim=evolve(builders.claim(f"gpu-{number:05}", G5_12XLARGE, pool=INFERENCE), usd_per_hour=price),
            reason=LaunchReason.PENDING_PODS,
            pods=(PodKey("default", f"llm-{number}"),),
            lost=(LostOffering("g5.48xlarge/us-east-1a/spot", price, extra),),
        )
        for number in range(138)
    )
    limits = (LimitUse("gpu-inference-large", "example.com/accelerator", limit=12_500, used=1_038, planned=138),)
    plan = evolve(scenes.plan(), launches=launches, limits=limits)
    screen = render_plan(plan, scenes.snapshot(), scenes.POLICY, scenes.CATALOG, now=READ_AT)

    text = in_words(printed(screen, width))

    each = str(price).removesuffix("/h").replace("$", "")
    assert {"gpu-inference-large", "+138", "138", "g5.12xlarge", "on-demand", each} <= text
    assert {"1038", "12500", "9%"} <= text
    # What does not fit is left out whole: there is no number that a wide screen would not show.
    assert {word for word in text if word[0] in "+0123456789"} <= in_words(printed(screen, 500))


@settings(max_examples=20, deadline=None)
@given(width=WIDTHS, price=PRICES)
def test_a_destruction_shows_every_count_and_price_whole(width: int, price: UsdPerHour) -> None:
    claims = [
        evolve(builders.claim(f"gpu-{number:05}", G5_XLARGE, pool=INFERENCE), usd_per_hour=price)
        for number in range(138)
    ]

    text = printed(render_destruction("sandbox", builders.document(*claims), ()), width)

    cost = str(UsdPerHour(price.micros * 138))
    assert {"138", cost.removesuffix("/h").replace("$", ""), f"{cost},"} <= in_words(text)


@pytest.mark.parametrize("width", range(60, 141, 8))
def test_every_machine_of_a_narrow_status_has_its_names_whole(width: int) -> None:
    claim = builders.claim("gpu-inference-large-00001", pool=INFERENCE)
    instance = evolve(scenes.snapshot().cloud.instances[0], claim=claim.name, id="i-0123456789abcdef0")
    node = builders.node("ip-10-0-112-134.us-east-1.compute.internal", instance_id=instance.id)
    seen = builders.snapshot(document=builders.document(claim), nodes=[node], cloud=CloudFacts(instances=(instance,)))

    text = in_words(printed(render_status(seen, scenes.POLICY, scenes.CATALOG, now=READ_AT), width))

    assert {claim.name, instance.id, node.name, "ready"} <= text


def test_the_next_best_stands_on_one_line_at_100_columns() -> None:
    launch = Launch(
        claim=builders.claim("gpu-inference-00001", G5_12XLARGE, pool=builders.node_pool("gpu-inference")),
        reason=LaunchReason.PENDING_PODS,
        pods=(PodKey("default", "llm"),),
        lost=(LostOffering("c7i.24xlarge/us-east-1a/spot", usd("1"), usd("0.0082")),),
    )
    plan = evolve(scenes.plan(), launches=(launch,) * 12)

    text = printed(render_plan(plan, scenes.snapshot(), scenes.POLICY, scenes.CATALOG, now=READ_AT))

    (row,) = [line for line in text.splitlines() if "+12" in line]
    assert row.endswith("+0.0082 c7i.24xlarge spot")


def test_a_row_that_fits_no_screen_becomes_a_paragraph() -> None:
    rows = table("node", ">GPUs", "type", gives_way=("type",))
    rows.add("a-name-as-long-as-the-screen-is-wide", "138", "p5.48xlarge")

    assert printed(rows, 38) == "a-name-as-long-as-the-screen-is-wide\n  GPUs 138  type p5.48xlarge\n"


def plainly_piped(screen: RenderableType) -> str:
    file = io.StringIO()
    Console(file=file, width=100, highlight=False, soft_wrap=True).print(screen)
    return file.getvalue()


def test_no_line_ends_in_blanks() -> None:
    seen = scenes.snapshot()
    plan = render_plan(scenes.plan(), seen, scenes.POLICY, scenes.CATALOG, now=READ_AT)
    status = render_status(seen, scenes.POLICY, scenes.CATALOG, now=READ_AT)

    for text in (plainly_piped(plan), plainly_piped(status), printed(plan, 80), printed(status, 80)):
        assert [line for line in text.splitlines() if line != line.rstrip()] == []
