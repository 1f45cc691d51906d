"""Test results as JUnit XML: one testsuite per file, one testcase per case, a failure with its whole text.

Follows the schema that Jenkins and GitLab read (junit-10.xsd). No times: the same results give the same text.
Names and texts are those of a terminal: what XML 1.0 cannot hold, not even escaped, is a visible escape there.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from webhook.terminal import one_line


class Result(Protocol):
    """What is known of one case; `why` is "" for a pass."""

    @property
    def id(self) -> str:
        """Its name among all cases."""
        ...

    @property
    def suite(self) -> str:
        """The file it is from."""
        ...

    @property
    def why(self) -> str:
        """What was not as expected."""
        ...


def write(results: Sequence[Result]) -> str:
    """The whole document."""
    root = Element("testsuites", _counts(results))
    for suite in dict.fromkeys(result.suite for result in results):
        own = [result for result in results if result.suite == suite]
        element = SubElement(root, "testsuite", {"name": one_line(suite), **_counts(own)})
        for result in own:
            case = SubElement(element, "testcase", {"classname": one_line(suite), "name": one_line(result.id)})
            if result.why:
                lines = result.why.split("\n")
                SubElement(case, "failure", {"message": one_line(lines[0])}).text = "\n".join(map(one_line, lines))
    indent(root)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{tostring(root, encoding="unicode")}\n'


def _counts(results: Iterable[Result]) -> dict[str, str]:
    listed = list(results)
    return {"tests": str(len(listed)), "failures": str(sum(bool(result.why) for result in listed))}
