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
        ("a,0,10,1,1Gi,1,,,,0", "day.csv:2:19: error bad-trace: count cannot be 0"),
        ("a,0,10,1,1Gi,1,,,,100001", "day.csv:2:19: error bad-trace: count cannot be 100001"),
        ("a,0,10,1,1Gi,0.5,,,,1", "day.csv:2:14: error bad-trace: gpu: '0.5' is no whole number"),
        ("a,0,10,1,1Gi,1500m,,,,1", "day.csv:2:14: error bad-trace: gpu: '1500m' is no whole number"),
        ("A B/ü,0,10,1,1Gi,1,,,,1", "day.csv:2:1: error bad-trace: name: 'A B/ü' is no name in Kubernetes"),
        ("a_b,0,10,1,1Gi,1,,,,1", "day.csv:2:1: error bad-trace: name: 'a_b' is no name in Kubernetes"),
        (f"{'a' * 252},0,10,1,1Gi,1,,,,2", f"day.csv:2:1: error bad-trace: name: '{'a' * 60}' is no name"),
        ('a,0,10,1,1Gi,1,,"k=v;\nz=w",,x', "day.csv:3:7: error bad-trace: count cannot be 'x'"),
        ('"a",0,"10",1,1Gx,1,,,,1', "day.csv:2:14: error bad-trace: memory: '1Gx' has the unknown unit"),
        ("a\x0cb,0,10,1,1Gi,1,,,,x", "day.csv:2:21: error bad-trace: count cannot be 'x'"),
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


def test_two_pods_of_one_name_are_refused_where_the_second_stands() -> None:
    assert told(HEADER + "a,0,1,1,1Gi,,,,,1\n\na,5,1,1,1Gi,,,,,1\na-1,5,1,1,1Gi,,,,,1\na,5,1,1,1Gi,,,,,2\n") == [
        "day.csv:4:1: error bad-trace: pod default/a is on line 2 already",
        "day.csv:6:1: error bad-trace: pod default/a-1 is on line 5 already",
    ]


def test_names_reach_to_kubernetes_bounds() -> None:
    header = "name,arrival,duration,cpu,memory,namespace,owner,count\n"
    row = f"{'a' * 251},0,1,1,1Gi,{'n' * 63},web.v1,2\n"
    assert [len(task.pod.key.name) for task in read_trace("day.csv", (header + row).encode())] == [253, 253]
    assert told(header + "a,0,1,1,1Gi,a.b,Web,1\nb,0,1,1,1Gi,a.b,,1\n") == [
        "day.csv:2:17: error bad-trace: owner: 'Web' is no name in Kubernetes",
        "day.csv:3:13: error bad-trace: namespace: 'a.b' is no name in Kubernetes",
    ]


def test_priorities_are_what_kubernetes_takes_negative_ones_too() -> None:
    header = "name,arrival,duration,cpu,memory,priority\n"
    lines = "low,0,1,1,1Gi,-2147483648\nplain,0,1,1,1Gi,\nsystem,0,1,1,1Gi,2000001000\n"
    tasks = read_trace("day.csv", (header + lines).encode())
    assert [task.pod.priority for task in tasks] == [-(2**31), 0, 2_000_001_000]
    assert told(header + "a,0,1,1,1Gi,-2147483649\n") == [
        "day.csv:2:13: error bad-trace: priority cannot be -2147483649"
    ]


def test_whole_gpus_may_be_written_in_any_unit() -> None:
    tasks = read_trace("day.csv", (HEADER + "a,0,1,1,1Gi,2000m,,,,1\nb,0,1,1,1Gi,2.0,,,,1\n").encode())
    assert [task.pod.placing.requests[NVIDIA_GPU] for task in tasks] == [2, 2]


@pytest.mark.parametrize(
    ("content", "finding"),
    [
        ((HEADER + "a,0,1,1,1Gi,,,,,1\n").replace("\n", "\r"), f"day.csv:1:{len(HEADER)}: error bad-trace: a carriage"),
        (HEADER + "a,0,1,1,1Gi,,,,,1\nb\r,0,1,1,1Gi,,,,,1\n", "day.csv:3:2: error bad-trace: a carriage return stands"),
        (HEADER + "x" * 200_000 + ",0,1,1,1Gi,,,,,1\n", "day.csv:2:1: error bad-trace: a cell has more than 131,072"),
        (HEADER + "x" * 200_000 + ",0,1,1,1Gi,,,,,1\r\n", "day.csv:2:1: error bad-trace: a cell has more than 131,072"),
        (HEADER + 'a,"' + "0\n" * 100_000, "day.csv:2:1: error bad-trace: a cell has more than 131,072 characters"),
        (HEADER + "a,0\0,1,1,1Gi,,,,,1\n", "day.csv:2:4: error bad-trace: the character NUL is in the file"),
    ],
)
def test_what_no_csv_can_be_is_told_with_its_place(content: str, finding: str) -> None:
    (found,) = told(content)
    assert found.startswith(finding)


def test_lines_may_end_as_on_windows() -> None:
    lines = HEADER + "a,0,1,1,1Gi,,,,,1\nb,0,1,1,1Gi,,,,,1\n"
    tasks = read_trace("day.csv", lines.replace("\n", "\r\n").encode())
    assert [task.pod.key.name for task in tasks] == ["a", "b"]
