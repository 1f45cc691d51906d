"""Defines the errors that several modules use, in one tree.

    ClaimgateError
    ├── InputError            unreadable file, YAML, JSON or fixture         -> exit 2
    │   └── UnknownRule       a param names a rule that does not exist
    ├── ConfigurationError    a flag, setting or policy that cannot be used  -> exit 2, refuse to start
    │   ├── DependencyChanged an installed package lacks a private part that claimgate uses
    │   └── PolicyError       every problem of the policies, collected
    ├── CallError             an unreadable call: carries its HTTP code      -> metav1.Status
    ├── CelError
    │   ├── CompileError      the first ten issues of one expression         -> the policy's failurePolicy
    │   └── EvaluationError   a failed expression                            -> the policy's failurePolicy
    │       ├── NoSuchOverload    a function got values that none of its signatures accepts
    │       ├── UnreadPartError   a part of an object was not decoded (unread.py)
    │       ├── NoDecision        something that the expression reads is not known
    │       ├── EvaluationPanic   cel-go panics on this input: CEL's || and && cannot absorb it
    │       └── BudgetExceeded    cost or deadline: CEL's || and && cannot absorb it
    │           └── TooLargeToCompile      a text is too large to compile here; the API server may accept it
    ├── BindingError          a binding that cannot be used on a request     -> the policy's failurePolicy
    │   └── MissingParams     a binding demands a param that does not exist
    ├── LookupFailed          it is not known whether an object exists (an absent object is None, no error)
    │   └── AmbiguousObject   files do not say which object is meant         -> the policy is not evaluated
    │       ├── DifferentDefinitions        files define the object differently
    │       ├── UnknownNamespaceOrName      the name or namespace of an object in a file is not known
    │       ├── UnknownLabels               no file has the Namespace
    │       └── MistypedLabels              a label is not a string, so no API server accepts the object
    ├── PatchError            a patch that does not apply
    ├── NotConverted          a policy of another project that has no exact native form       -> reported
    └── ProgramError          an external program that is absent, refused or beyond a bound    -> exit 2
    ReviewPaused              a review that starts again: outside the tree, so that nothing absorbs it
      InlineBudgetSpent       a review that starts again in a worker process

Errors are caught by their class, never by their message. Messages are in lower case, name the path, and say what to do.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from traceback import FrameSummary, extract_tb
from typing import Final

from msgspec import Struct

from webhook.text.terminal import message_lines


class ClaimgateError(Exception):
    """The base class of all errors that claimgate raises on purpose."""


class InputProblem(Struct, frozen=True, kw_only=True):
    """A problem in data of users, with its place.

    line and column count from 1; 0 means unknown. `excerpt` is a line of source with a caret line under it, or "".
    """

    message: str
    file: str = ""
    line: int = 0
    column: int = 0
    path: str = ""
    excerpt: str = ""

    def __str__(self) -> str:
        """Return the problem on one line, safe for terminals, with the excerpt below."""
        place = ":".join(str(part) for part in (self.file, self.line, self.column) if part)
        text = "\n".join(message_lines(": ".join(part for part in (place, self.path, self.message) if part)))
        return f"{text}\n{self.excerpt}" if self.excerpt else text


class InputError(ClaimgateError):
    """Data of users cannot be read."""

    def __init__(self, *problems: InputProblem) -> None:
        super().__init__("\n".join(map(str, problems)))
        self.problems = problems


class UnknownRule(InputError):
    """A param names rules that do not exist, so the meaning of the param is not known."""


class ConfigurationError(ClaimgateError):
    """A flag, setting or policy cannot be used."""


class DependencyChanged(ConfigurationError):
    """An installed package lacks a private part that claimgate uses (see each `private_api.py`)."""

    def __init__(self, package: str, what: str) -> None:
        from importlib.metadata import version

        fix = "install a version that claimgate's package metadata allows, such as the version in requirements.lock"
        super().__init__(f"{package} {version(package)} does not work here: {what} has changed; {fix}")


class PolicyError(ConfigurationError):
    """All problems of a set of policies, reported together."""

    def __init__(self, problems: tuple[InputProblem, ...]) -> None:
        super().__init__("\n".join(map(str, problems)))
        self.problems = problems


class NotConverted(ClaimgateError):
    """A part of another project's policy has no exact native form.

    `path` is relative to the policy. `why` says what the part does, in lower case and without a full stop.
    """

    def __init__(self, path: tuple[str | int, ...], why: str) -> None:
        super().__init__(why)
        self.path = path
        self.why = why


class CallError(ClaimgateError):
    """A call cannot be read. `code` is the HTTP code, `reason` the reason of the metav1.Status."""

    def __init__(self, code: int, reason: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.message = message


class CelError(ClaimgateError):
    """The error of an expression."""


class CompileIssue(Struct, frozen=True):
    """One compile error: line counts from 1, column from 0, both in characters, as cel-go prints them.

    Line 0 means the whole expression, -1 an error without a place, such as a limit.
    """

    message: str
    line: int
    column: int


class CompileError(CelError):
    """The first issues of one expression, each with a line and a caret as in cel-go.

    cel-go prints every issue with its whole line. A user's expression may have thousands of issues in a very long line.
    """

    _MOST_ISSUES: Final = 10
    _MOST_OF_LINE: Final = 200
    _MOST_OF_MESSAGE: Final = 1_000

    def __init__(self, source: str, issues: tuple[CompileIssue, ...], count: int = 0) -> None:
        """Keep the first ten issues, in order of place; `count` is the number of all issues."""
        super().__init__()
        self.source = source
        self.issues = issues[: self._MOST_ISSUES]
        self.count = max(count, len(issues))

    def __str__(self) -> str:
        lines = self.source.split("\n")
        printed = [self._issue_as_cel_go_prints(issue, lines) for issue in self.issues]
        more = self.count - len(self.issues)
        return "\n".join([*printed, f" | and {more if more < 1_000_000 else 'millions'} more"] if more else printed)

    def _issue_as_cel_go_prints(self, issue: CompileIssue, lines: Sequence[str]) -> str:
        message = issue.message
        if len(message) > self._MOST_OF_MESSAGE:
            message = f"{message[: self._MOST_OF_MESSAGE]}…"
        if issue.line == 0:
            return message
        head = f"ERROR: <input>:{issue.line}:{issue.column + 1}: {message}"
        if not 0 < issue.line <= len(lines):
            return head
        text, column = self._part_of_line(lines[issue.line - 1], issue.column)
        text = text.replace("\t", " ")
        dots = "".join("." if character.isascii() else "\uff0e" for character in text[:column])
        caret = "^" if text[column : column + 1].isascii() else "\uff3e"
        return f"{head}\n | {text}\n | {dots}{caret}"

    def _part_of_line(self, line: str, column: int) -> tuple[str, int]:
        if len(line) <= self._MOST_OF_LINE:
            return line, column
        start = max(0, min(column - self._MOST_OF_LINE // 2, len(line) - self._MOST_OF_LINE))
        end = start + self._MOST_OF_LINE
        before = "…" if start else ""
        return f"{before}{line[start:end]}{'…' if end < len(line) else ''}", column - start + len(before)


class EvaluationError(CelError):
    """An expression failed on this input. The text is cel-go's wording: `no such key: x`."""


class NoDecision(EvaluationError):
    """An expression reads something unknown: an answer of `authorizer`, or a field that a controller fills in."""


class NoSuchOverload(EvaluationError):
    """A function got values that none of its signatures accepts."""

    def __init__(self, message: str = "no such overload") -> None:
        super().__init__(message)


class UnreadPartError(EvaluationError):
    """An expression or a check reads a part of an object that was not decoded, for example because it is too deep."""

    def __init__(self, reason: str = "") -> None:
        super().__init__(f"a part of the object was not read{reason and ': '}{reason}")


class EvaluationPanic(EvaluationError):
    """cel-go panics on this input: the whole expression fails, and CEL's || and && cannot absorb the error."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"internal error: {reason}")


class BudgetExceeded(EvaluationError):
    """The cost limit or the deadline is reached; CEL's || and && cannot absorb the error."""


class TooLargeToCompile(BudgetExceeded):
    """A text of a user is too large to compile here; whether the API server accepts the text is not known."""


class BindingError(ClaimgateError):
    """A binding cannot be used on this request: no such namespace, no parameters. The text is the API server's."""


class MissingParams(BindingError):
    """A binding demands a param that does not exist. `named` is the name of the param."""

    def __init__(self, named: str) -> None:
        super().__init__("no params found for policy binding with `Deny` parameterNotFoundAction")
        self.named = named


class LookupFailed(ClaimgateError):
    """The view does not know whether the object exists."""


class AmbiguousObject(LookupFailed):
    """Files do not say which object a cluster has."""


class DifferentDefinitions(AmbiguousObject):
    """Several files have different objects with this name."""


class UnknownNamespaceOrName(AmbiguousObject):
    """A file has an object with this name, but its namespace, or its name after kustomize, is not known."""


class UnknownLabels(AmbiguousObject):
    """No file has the Namespace, so its labels are not known."""

    def __init__(self, namespace: str) -> None:
        super().__init__(f"labels of Namespace {namespace} are not known")
        self.namespace = namespace


class MistypedLabels(AmbiguousObject):
    """A label that a selector reads is not a string; API servers refuse such an object."""


class PatchError(ClaimgateError):
    """A patch cannot be read or applied; the text is that of evanphx/json-patch."""


class ProgramError(ClaimgateError):
    """An external program is absent, must not be started with the given arguments, failed, or exceeded a bound."""


class ReviewPaused(Exception):
    """Stops the evaluation of a review, which starts again later; CEL and checks must not absorb it."""


class InlineBudgetSpent(ReviewPaused):
    """A review took longer than it may on the event loop, and starts again in a worker process."""


def fault_locations(frames: Iterable[FrameSummary]) -> list[str]:
    """Return a line for each frame of an unexpected error, the outermost first; never any values."""
    return [f"{frame.filename}:{frame.lineno} {frame.name}" for frame in frames]


def describe_fault(error: BaseException) -> dict[str, object]:
    """Return the type and place of an unexpected error as log fields, without its text, which may quote an object."""
    return {"error": type(error).__name__, "traceback": fault_locations(extract_tb(error.__traceback__))}
