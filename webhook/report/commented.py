"""Applies comments `# claimgate:ignore RULE reason` of an audited file to the findings at their lines.

A finding with a comment becomes an exception, as in claimgate.yaml. Reports count the exception and show the reason.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

from msgspec.structs import replace

from webhook.manifests.configuration import FileConfiguration
from webhook.manifests.leave_alone import may_have_comments
from webhook.report.counts import FINDINGS
from webhook.report.finding import Finding, Result
from webhook.text.terminal import one_line
from webhook.yamltext.ignore_comments import IgnoreComment

OF_COMMENT: Final = "excepted by a comment in the file: "
"""The beginning of the reason of an exception by a comment."""


class CommentedFindings:
    """Applies the comments of a file to the findings of an object.

    Args:
        configuration: says in which namespaces comments have an effect.
        comments: returns the comments for a line of the file.

    Attributes:
        warnings: lines about comments without effect.
    """

    def __init__(self, configuration: FileConfiguration, comments: Callable[[int], Sequence[IgnoreComment]]) -> None:
        self._configuration = configuration
        self._comments = comments
        self.warnings: list[str] = []

    def apply(self, findings: Iterable[Finding]) -> Iterator[Finding]:
        """Yield the findings. A finding with a comment is an exception."""
        for finding in findings:
            comment = self._comment_about(finding)
            if comment is None or (mistake := self._mistake(finding, comment)):
                if comment is not None:
                    place = replace(finding.place, line=comment.line)
                    self.warnings.append(f"{place}: the comment `claimgate:ignore {one_line(comment.rule)}` {mistake}")
                yield finding
                continue
            exception = f"{OF_COMMENT}{comment.reason}"
            decision = replace(finding.decision, lets_pass=True, warns_user=False, exception=exception)
            yield replace(finding, result=Result.SKIP, decision=decision)

    def _comment_about(self, finding: Finding) -> IgnoreComment | None:
        if finding.result not in FINDINGS or not finding.place.line:
            return None
        return next((each for each in self._comments(finding.place.line) if each.rule == finding.rule.id), None)

    def _mistake(self, finding: Finding, comment: IgnoreComment) -> str:
        if not may_have_comments(self._configuration, finding.subject.namespace):
            return "has no effect because the configuration does not allow it here (ignoreComments)"
        return "" if comment.reason else "has no effect without a reason: write the reason after the rule"
