"""Test results as JUnit XML: one testsuite per file, one testcase per case, a failure with its whole text.

Follows the schema that Jenkins and GitLab read (junit-10.xsd). No times: the same results give the same text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final, Protocol
from xml.etree.ElementTree import Element, SubElement, indent, tostring

_FORBIDDEN: Final = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML 1.0 cannot hold, not even escaped."""


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
        element = SubElement(root, "testsuite", {"name": _clean(suite), **_counts(own)})
        for result in own:
            case = SubElement(element, "testcase", {"classname": _clean(suite), "name": _clean(result.id)})
            if result.why:
                first = result.why.splitlines()[0]
                SubElement(case, "failure", {"message": _clean(first)}).text = _clean(result.why)
    indent(root)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{tostring(root, encoding="unicode")}\n'


def _counts(results: Iterable[Result]) -> dict[str, str]:
    listed = list(results)
    return {"tests": str(len(listed)), "failures": str(sum(bool(result.why) for result in listed))}


def _clean(text: str) -> str:
    return _FORBIDDEN.sub("\ufffd", text)
