"""Semantic versions: kubernetes.Semver v1, since 1.33. Sources: k8s.io/apiserver v0.36.1 pkg/cel/library/semverlib.go,
github.com/blang/semver/v4 semver.go.

semver(string) -> kubernetes.Semver
    Reads a version by semver.org's rules: three numbers, then `-` pre-release and `+` build, both optional.

    semver('1.2.3-rc.1') == semver('1.2.3-rc.1+build5') // true
    semver('v1.0.0') // error: Invalid character(s) found in major number "v1"
    semver('1.0') // error: No Major.Minor.Patch elements found

semver(string, bool) -> kubernetes.Semver
    With true, a leading `v`, leading zeros and missing numbers are accepted.

    semver('v1.01', true) == semver('1.1.0') // true
    semver('v1.0', false) // error: No Major.Minor.Patch elements found

isSemver(string) -> bool

    isSemver('1.0.0') // true
    isSemver('hello') // false
    isSemver(dyn(1)) // error: no such overload

isSemver(string, bool) -> bool

    isSemver('v1', true) // true
    isSemver('v1', false) // false
    isSemver('1', dyn('true')) // error: no such overload

kubernetes.Semver.major() -> int

    semver('1.2.3').major() // 1
    dyn('1.2.3').major() // error: no such overload

kubernetes.Semver.minor() -> int

    semver('1.2.3').minor() // 2
    dyn('1.2.3').minor() // error: no such overload

kubernetes.Semver.patch() -> int

    semver('1.2.3').patch() // 3
    dyn('1.2.3').patch() // error: no such overload

kubernetes.Semver.isGreaterThan(kubernetes.Semver) -> bool

    semver('1.0.0').isGreaterThan(semver('1.0.0-rc.1')) // true
    semver('1.0.0').isGreaterThan(dyn('0.1.0')) // error: no such overload

kubernetes.Semver.isLessThan(kubernetes.Semver) -> bool

    semver('1.9.0').isLessThan(semver('1.10.0')) // true
    semver('1.0.0').isLessThan(dyn('2.0.0')) // error: no such overload

kubernetes.Semver.compareTo(kubernetes.Semver) -> int
    -1, 0 or 1; the build is ignored.

    semver('1.0.0-alpha').compareTo(semver('1.0.0-1')) // 1
    semver('1.2.3+a').compareTo(semver('1.2.3+b')) // 0
    semver('1.0.0').compareTo(dyn('2.0.0')) // error: no such overload
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, ClassVar

from webhook.cel.library import costs
from webhook.cel.library.declaration import Overload
from webhook.cel.library.go_text import quote_as_go
from webhook.cel.types import BOOL, INT, STRING, Type, opaque_type
from webhook.cel.values import UINT_MAX
from webhook.deadline import Deadline
from webhook.errors import EvaluationError

SEMVER = opaque_type("kubernetes.Semver")
_IDENTIFIER = re.compile(r"[A-Za-z0-9-]+")
_DIGITS = re.compile(r"[0-9]+")


class Semver:
    """A version: numbers, pre-release identifiers (ints and texts), build identifiers."""

    __slots__ = ("_order", "build", "numbers", "prerelease")
    cel_type: ClassVar[Type] = SEMVER
    go_unhashable: ClassVar[str] = "cel.Semver"

    def __init__(
        self, numbers: tuple[int, int, int], prerelease: tuple[int | str, ...] = (), build: tuple[str, ...] = ()
    ) -> None:
        self.numbers = numbers
        self.prerelease = prerelease
        self.build = build
        parts = tuple([(type(part) is str, part) for part in prerelease])
        self._order = (numbers, not prerelease, parts)

    def sort_key(self) -> tuple[Any, ...]:
        """Return a sort key without the build. A release is after its pre-releases, and numbers are before texts."""
        return self._order

    def __eq__(self, other: object) -> bool:
        return type(other) is Semver and self.sort_key() == other.sort_key()

    def __hash__(self) -> int:
        return hash(self.sort_key())

    def __str__(self) -> str:
        text = ".".join(map(str, self.numbers))
        if self.prerelease:
            text += "-" + ".".join(map(str, self.prerelease))
        return f"{text}+{'.'.join(self.build)}" if self.build else text

    def __repr__(self) -> str:
        return f"Semver({self})"


def parse_strictly(text: str, deadline: Deadline | None = None) -> Semver:
    """Return the version in a text by the rules of semver.org.

    Raises:
        ValueError: the text is not a version.
    """
    if not text:
        raise ValueError("Version string empty")
    parts = text.split(".", 2)
    if len(parts) != 3:
        raise ValueError("No Major.Minor.Patch elements found")
    patch, plus, build = parts[2].partition("+")
    patch, dash, prerelease = patch.partition("-")
    deadline = deadline or Deadline()
    texts = (("major", parts[0]), ("minor", parts[1]), ("patch", patch))
    major, minor, patch_ = (_parse_number(which, part, deadline) for which, part in texts)
    identifiers = (
        [_parse_prerelease_identifier(each, deadline) for each in deadline.charge_for_items(prerelease.split("."))]
        if dash
        else ()
    )
    metadata = (
        [_check_build_identifier(each, deadline) for each in deadline.charge_for_items(build.split("."))]
        if plus
        else ()
    )
    return Semver((major, minor, patch_), tuple(identifiers), tuple(metadata))


def _parse_number(which: str, text: str, deadline: Deadline) -> int:
    if text.strip("0123456789"):
        raise ValueError(f"Invalid character(s) found in {which} number {quote_as_go(text, deadline)}")
    if len(text) > 1 and text.startswith("0"):
        raise ValueError(f"{which.capitalize()} number must not contain leading zeroes {quote_as_go(text, deadline)}")
    return _parse_unsigned(text, deadline)


def _parse_unsigned(text: str, deadline: Deadline) -> int:
    if not text:
        raise ValueError('strconv.ParseUint: parsing "": invalid syntax')
    if len(text) > 20 or int(text) > UINT_MAX:
        raise ValueError(f"strconv.ParseUint: parsing {quote_as_go(text, deadline)}: value out of range")
    return int(text)


def _parse_prerelease_identifier(text: str, deadline: Deadline) -> int | str:
    if not text:
        raise ValueError("Prerelease is empty")
    if _DIGITS.fullmatch(text):
        if len(text) > 1 and text.startswith("0"):
            raise ValueError(
                f"Numeric PreRelease version must not contain leading zeroes {quote_as_go(text, deadline)}"
            )
        return _parse_unsigned(text, deadline)
    if not _IDENTIFIER.fullmatch(text):
        raise ValueError(f"Invalid character(s) found in prerelease {quote_as_go(text, deadline)}")
    return text


def _check_build_identifier(text: str, deadline: Deadline) -> str:
    if not text:
        raise ValueError("Build meta data is empty")
    if not _IDENTIFIER.fullmatch(text):
        raise ValueError(f"Invalid character(s) found in build meta data {quote_as_go(text, deadline)}")
    return text


def parse_leniently(text: str, deadline: Deadline | None = None) -> Semver:
    """Return the version in a text that may have a leading `v`, leading zeros and missing numbers.

    Raises:
        ValueError: the text is not a version in this form either.
    """
    parts = [_without_leading_zeros(part) for part in text.removeprefix("v").split(".", 2)]
    if len(parts) < 3:
        if set("+-") & set(parts[-1]):
            raise ValueError("short version cannot contain PreRelease/Build meta data")
        parts += ["0"] * (3 - len(parts))
    return parse_strictly(".".join(parts), deadline)


def _without_leading_zeros(part: str) -> str:
    if len(part) < 2:
        return part
    rest = part.lstrip("0")
    return rest if rest[:1] and rest[0] in "0123456789" else "0" + rest


def _parse_or_fail(deadline: Deadline, text: str, is_lenient: bool = False) -> Semver:
    try:
        return parse_leniently(text, deadline) if is_lenient else parse_strictly(text, deadline)
    except ValueError as error:
        raise EvaluationError(str(error)) from None


def _is_semver(deadline: Deadline, text: str, is_lenient: bool = False) -> bool:
    try:
        parse_leniently(text, deadline) if is_lenient else parse_strictly(text, deadline)
    except ValueError:
        return False
    return True


def _as_int64(number: int) -> int:
    # upstream converts uint64 to int64, which may wrap around
    return number - 2**64 if number >= 2**63 else number


def _compare_versions(left: Semver, right: Semver) -> int:
    left_key, right_key = left.sort_key(), right.sort_key()
    return int(left_key > right_key) - int(left_key < right_key)


def _parsing_overload(name: str, id_: str, result: Type, implementation: Callable[..., Any], *more: Type) -> Overload:
    return Overload(
        name, id_, (STRING, *more), result, implementation, since=(1, 33), cost=costs.walk_target_cost, metered=True
    )


def _method_overload(name: str, id_: str, result: Type, implementation: Callable[..., Any], *more: Type) -> Overload:
    return Overload(name, f"semver_{id_}", (SEMVER, *more), result, implementation, member=True, since=(1, 33))


FUNCTIONS = (
    _parsing_overload("semver", "string_to_semver", SEMVER, _parse_or_fail),
    _parsing_overload("semver", "string_bool_to_semver", SEMVER, _parse_or_fail, BOOL),
    _parsing_overload("isSemver", "is_semver_string", BOOL, _is_semver),
    _parsing_overload("isSemver", "is_semver_string_bool", BOOL, _is_semver, BOOL),
    _method_overload("isGreaterThan", "is_greater_than", BOOL, lambda a, b: a.sort_key() > b.sort_key(), SEMVER),
    _method_overload("isLessThan", "is_less_than", BOOL, lambda a, b: a.sort_key() < b.sort_key(), SEMVER),
    _method_overload("compareTo", "compare_to", INT, _compare_versions, SEMVER),
    _method_overload("major", "major", INT, lambda version: _as_int64(version.numbers[0])),
    _method_overload("minor", "minor", INT, lambda version: _as_int64(version.numbers[1])),
    _method_overload("patch", "patch", INT, lambda version: _as_int64(version.numbers[2])),
)
