"""A trace's lines become pods that come and go; what is wrong with a line is told with its place."""

from __future__ import annotations

from datetime import timedelta

import pytest

from engine.model.constraint import TaintEffect
from engine.model.diagnostic import InvalidInput
from engine.model.quantity import NVIDIA_GPU
from engine.simulate.tasks import Stay
from engine.simulate.trace import read_trace

HEADER = "name,arrival,duration,cpu,memory,gpu,stay,selector,tolerations,count\n"


def told(content: str) -> list[str]:
    with pytest.raises(InvalidInput) as raised:
        read_trace("day.csv", content.encode())
    return [str(each).partition(" (")[0] for each in raised.value.diagnostics]


def test_a_line_is_a_pod_with_its_time_and_what_it_asks_for() -> None:
    told = "workload-type=elastic:NoSchedule;nvidia.com/gpu"
    line = f"llm,90,1h30m,3500m,12Gi,1,replica,workload-type=elastic;zone=a,{told},1\n"
    (task,) = read_trace("day.csv", (HEADER + line).encode())
    assert (task.after, task.lasts, task.stay) == (timedelta(seconds=90), timedelta(minutes=90), Stay.REPLICA)
    assert str(task.pod.key) == "default/llm"
    assert (task.pod.placing.requests["cpu"], task.pod.placing.requests[NVIDIA_GPU]) == (3500, 1)
    assert task.pod.placing.node_selector == {"workload-type": "elastic", "zone": "a"}
    first, second = task.pod.placing.tolerations
    assert (first.key, first.value, first.exists, first.effect) == (
        "workload-type", "elastic", False, TaintEffect.NO_SCHEDULE,
    )  # fmt: skip
    assert (second.key, second.exists, second.effect) == (NVIDIA_GPU, True, None)


def test_a_count_makes_so_many_pods_and_no_duration_is_for_good() -> None:
    tasks = read_trace("day.csv", (HEADER + "web,0,,1,1Gi,,,,,3\n").encode())
    assert [task.pod.key.name for task in tasks] == ["web-0", "web-1", "web-2"]
    assert {(task.lasts, task.stay, NVIDIA_GPU in task.pod.placing.requests) for task in tasks} == {
        (None, Stay.JOB, False)
    }


@pytest.mark.parametrize(
    ("line", "finding"),
    [
        ("a,soon,10,1,1Gi,1,,,,1", "day.csv:2:3: error bad-trace: arrival 'soon' is no time"),
        ("a,0,-5,1,1Gi,1,,,,1", "day.csv:2:5: error bad-trace: duration '-5' is no time that can be"),
        (
            "a,0,10,1,1Gx,1,,,,1",
            "day.csv:2:10: error bad-trace: memory: '1Gx' has the unknown unit 'Gx'",
        ),
        ("a,0,10,1,1Gi,1,pet,,,1", "day.csv:2:16: error bad-trace: stay cannot be 'pet'"),
        ("a,0,10,1,1Gi,1,,zone,,1", "day.csv:2:17: error bad-trace: selector: 'zone' is no key=value"),
        ("a,0,10,1,1Gi,1,,,a:Never,1", "day.csv:2:18: error bad-trace: 'Never' is no effect of a taint"),
        ("a,0,10,1", "day.csv:2:8: error bad-trace: 4 cells, and the first line names 10 columns"),
        (",0,10,1,1Gi,1,,,,1", "day.csv:2:1: error bad-trace: the pod has no name"),
    ],
)
def test_what_is_wrong_with_a_line_is_told_with_its_place(line: str, finding: str) -> None:
    (found,) = told(f"{HEADER}{line}\n")
    assert found.startswith(finding)


def test_a_file_that_is_no_trace_says_which_columns_it_needs() -> None:
    assert told("when,what\n1,2\n") == [
        "day.csv:1:1: error bad-trace: the first line names no column name, arrival, duration, cpu, memory"
    ]
    assert told("name,arrival,duration,cpu,memory,colour\n") == [
        "day.csv:1:34: error bad-trace: 'colour' is no column of a trace"
    ]
    assert told("") == [
        "day.csv:1:1: error bad-trace: the first line names no column name, arrival, duration, cpu, memory"
    ]


def test_two_pods_of_one_name_are_refused() -> None:
    assert told(HEADER + "a,0,1,1,1Gi,,,,,1\na,5,1,1,1Gi,,,,,1\n") == [
        "day.csv:1:1: error bad-trace: pod default/a comes twice"
    ]
