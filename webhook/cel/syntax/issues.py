"""Collects the issues of one expression.

An expression can have as many mistakes as characters, and cel-go repeats the mistakes of some macro operands. So only
the first hundred mistakes are kept, and later mistakes are counted.
"""

from __future__ import annotations

from typing import Final

from webhook.cel.syntax import lexer
from webhook.errors import CompileError, CompileIssue

_MOST_KEPT: Final = 100


class IssueList:
    """The first hundred issues of an expression, and the number of all issues."""

    def __init__(self, source: str) -> None:
        self.count = 0
        self.kept: list[CompileIssue] = []
        self._source = source

    def report(self, message: str, offset: int) -> None:
        if len(self.kept) < _MOST_KEPT:
            self.kept.append(CompileIssue(message, *lexer.line_and_column(self._source, offset)))
        self.count += 1

    def report_of_all(self, issue: CompileIssue) -> None:
        self.kept.append(issue)
        self.count += 1

    def repeat_since(self, count: int) -> None:
        """Add the issues after the first `count` again."""
        added = self.count - count
        self.kept += self.kept[count : count + _MOST_KEPT - len(self.kept)]
        self.count += added

    def clear(self) -> None:
        self.count = 0
        self.kept.clear()

    def __bool__(self) -> bool:
        return self.count > 0

    def as_error(self) -> CompileError:
        """Return the error with the kept issues, in order of line and column."""
        issues = sorted(self.kept, key=lambda issue: (issue.line, issue.column))
        return CompileError(self._source, tuple(issues), self.count)
