"""Results of test cases as JUnit XML, which CI systems read."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from streams.trial.case_run import CaseResult


def junit_xml(file: Path, results: Sequence[CaseResult]) -> bytes:
    """Return the results of one file as a test suite."""
    suite = Element(
        "testsuite",
        name=str(file),
        tests=str(len(results)),
        failures=str(sum(not one.is_passed for one in results)),
        time=f"{sum(one.seconds for one in results):.3f}",
    )
    for one in results:
        case = SubElement(
            suite,
            "testcase",
            classname=file.stem,
            name=one.case.name,
            file=str(file),
            line=str(one.case.line),
            time=f"{one.seconds:.3f}",
        )
        if not one.is_passed:
            SubElement(case, "failure", message=one.problems[0]).text = "\n".join(one.problems)
    indent(suite)
    text: bytes = tostring(suite, encoding="utf-8", xml_declaration=True)
    return text
