"""What tests of policy came to, as JUnit XML: a suite for each file, and one each for what a threshold asks."""

from __future__ import annotations

import re
from xml.etree import ElementTree

from engine.model.diagnostic import Severity
from engine.policy.testing.tests_run import PolicyTestsRun
from engine.report.policy_test_report import missing_words, percent_words, place_words, problem_lines

# What XML 1.0 has no way to write (its section 2.2).
_NO_CHARACTER = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def policy_tests_junit(run: PolicyTestsRun) -> str:
    """The document. Nothing was timed, so all times are 0. A case that is not valid is an error, not a failure."""
    suites = ElementTree.Element("testsuites", name="nodewright test")
    for file in sorted({each.file for each in run.results} | {each.position.file for each in run.findings}):
        _file_suite(suites, run, file)
    if run.threshold is not None:
        _coverage_suite(suites, run, run.threshold)
    if run.needs_tests:
        _needed_suite(suites, run)
    _count(suites)
    ElementTree.indent(suites)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(suites, encoding="unicode")


def _file_suite(suites: ElementTree.Element, run: PolicyTestsRun, file: str) -> None:
    suite = ElementTree.SubElement(suites, "testsuite", name=_text(file))
    errors = [each for each in run.findings if each.position.file == file and each.severity is Severity.ERROR]
    if errors:
        case = _case(suite, "the file is valid", file)
        _told(case, "error", str(errors[0]), "\n".join(map(str, errors)))
    for result in (each for each in run.results if each.file == file):
        case = _case(suite, result.name, f"{result.test}.{result.rule}" if result.rule else result.test)
        case.set("file", _text(result.position.file))
        case.set("line", str(result.position.line))
        if not result.passes:
            what = "error" if result.is_invalid else "failure"
            lines = [f"{place_words(result.position)}: {result.name}", *problem_lines(result)]
            _told(case, what, result.problem, "\n".join(lines))


def _coverage_suite(suites: ElementTree.Element, run: PolicyTestsRun, threshold: float) -> None:
    suite = ElementTree.SubElement(suites, "testsuite", name="coverage")
    for each in run.coverage:
        case = _case(suite, each.rule, "coverage")
        if not each.reaches(threshold):
            gaps = [f"{place_words(gap.position)}: {missing_words(gap)}: {gap.text}" for gap in each.gaps]
            message = f"{percent_words(each.percent)} of its outcomes, wanted {percent_words(threshold)}"
            _told(case, "failure", message, "\n".join(gaps) or message)


def _needed_suite(suites: ElementTree.Element, run: PolicyTestsRun) -> None:
    suite = ElementTree.SubElement(suites, "testsuite", name="every rule has a case")
    untested = {rule: each.file for each in run.untested for rule in each.rules}
    for each in run.coverage:
        case = _case(suite, each.rule, "tested")
        if each.rule in untested:
            message = f"no case evaluates this rule of {untested[each.rule]}"
            _told(case, "failure", message, message)


def _case(suite: ElementTree.Element, name: str, of: str) -> ElementTree.Element:
    return ElementTree.SubElement(suite, "testcase", name=_text(name), classname=_text(of), time="0")


def _told(case: ElementTree.Element, what: str, message: str, text: str) -> None:
    told = ElementTree.SubElement(case, what, message=_text(message), type=what)
    told.text = _text(text)


def _count(suites: ElementTree.Element) -> None:
    for element in (suites, *suites.findall("testsuite")):
        element.set("tests", str(len(list(element.iter("testcase")))))
        element.set("failures", str(len(list(element.iter("failure")))))
        element.set("errors", str(len(list(element.iter("error")))))
        element.set("time", "0")
        if element is not suites:
            element.set("skipped", "0")


def _text(text: str) -> str:
    return _NO_CHARACTER.sub("�", text)
