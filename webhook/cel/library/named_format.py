"""Named formats: kubernetes.format, since 1.31.

Sources: k8s.io/apiserver v0.36.1 pkg/cel/library/format.go, apimachinery pkg/util/validation and
pkg/api/validate/content, kube-openapi pkg/validation/strfmt. All patterns run on RE2.

format.named(string) -> optional_type(kubernetes.NamedFormat)
    One of dns1123Label, dns1123Subdomain, dns1035Label, these three names followed by Prefix (for a name that will be
    continued), qualifiedName, labelValue, uri, uuid, byte, date and datetime; absent for any other name.

    format.named('uuid').hasValue() // true
    format.named('email').hasValue() // false
    format.named(dyn(1)) // error: no such overload

format.dns1123Label() -> kubernetes.NamedFormat
    Every other name has a function, too: format.dns1123Subdomain(), format.uri() …

    format.dns1123Label() == format.named('dns1123Label').value() // true
    format.dns1123Label().validate(dyn(1)) // error: no such overload

kubernetes.NamedFormat.validate(string) -> optional_type(list(string))
    The problems of a text; absent if the text has none.

    format.dns1123Label().validate('my-label') // optional.none()
    format.dns1123Label().validate('my.label').value() // ['must not contain dots']
    format.dns1035LabelPrefix().validate('my-label-') // optional.none()
    format.qualifiedName().validate('a/b/c').hasValue() // true
    format.date().validate('2021-02-29').value() // ['invalid date']
    format.uuid().validate('x').value() // ['does not match the UUID format']
    format.uri().validate('no').value() // ['parse "no": invalid URI for request']
    format.byte().validate('aGVsbG8=') // optional.none()
    format.datetime().validate('2021-01-01T00:00:00Z') // optional.none()
    format.labelValue().validate(dyn(1)) // error: no such overload
"""

from __future__ import annotations

import calendar
import re
from collections.abc import Callable
from functools import cache
from typing import Any, ClassVar

from msgspec import Struct

from webhook.apimachinery.names import (
    dns1035_label_errors,
    dns1123_label_errors,
    dns1123_subdomain_errors,
    label_value_errors,
    qualified_name_errors,
)
from webhook.cel.library import costs, lists
from webhook.cel.library.declaration import Overload, Version
from webhook.cel.library.optional_value import NONE, Optional
from webhook.cel.library.patterns import Pattern, compile_policy_pattern
from webhook.cel.library.url import BadUrl, parse_request_url
from webhook.cel.types import STRING, Type, list_of, opaque_type, optional_of
from webhook.deadline import Deadline

FORMAT = opaque_type("kubernetes.NamedFormat")

_UUID = "(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}$"
_BASE64 = r"^(?:[A-Za-z0-9+\/]{4})*(?:[A-Za-z0-9+\/]{2}==|[A-Za-z0-9+\/]{3}=|[A-Za-z0-9+\/]{4})$"
_TIME = r"^([0-9]{2}):([0-9]{2}):([0-9]{2})(.[0-9]+)?(z|([+-][0-9]{2}:[0-9]{2}))$"
_TOO_LONG = re.compile(r"must be no more than [0-9]+ bytes\Z")
_DATE = re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{2})")


class NamedFormat(Struct, frozen=True, eq=False):
    """A format: its name upstream, the function that finds problems, and a pattern's length for the cost.

    If `metered` is true, the function takes the Deadline after the text.
    """

    cel_type: ClassVar[Type] = FORMAT
    go_unhashable: ClassVar[str] = "cel.Format"

    name: str
    problems: Callable[..., list[str]]
    pattern_length: int
    metered: bool = False

    def __eq__(self, other: object) -> bool:
        return type(other) is NamedFormat and self.name == other.name

    def __hash__(self) -> int:
        return hash(self.name)

    def __str__(self) -> str:
        return self.name

    def problems_of(self, text: str, deadline: Deadline) -> list[str]:
        deadline.spend_text(text)
        return self.problems(text, deadline) if self.metered else self.problems(text)


def _with_lengths_in_characters(problems: Callable[[str, str], list[str]]) -> Callable[[str], list[str]]:
    # format.go counts characters, not bytes
    return lambda text: problems(text, "characters")


def _with_final_dash_allowed(problems: Callable[[str], list[str]]) -> Callable[[str], list[str]]:
    # a text that will be continued may end with a dash

    def problems_of_prefix(text: str) -> list[str]:
        return problems(f"{text[:-2]}a" if len(text) > 1 and text.endswith("-") else text)

    return problems_of_prefix


def uri_problems(text: str, deadline: Deadline) -> list[str]:
    try:
        parse_request_url(deadline, text)
    except BadUrl as error:
        return [str(error)]
    return []


@cache
def _compiled_pattern(text: str) -> Pattern:
    return compile_policy_pattern(text)


def uuid_problems(text: str) -> list[str]:
    return [] if _compiled_pattern(_UUID).is_found_in(text) else ["does not match the UUID format"]


def base64_problems(text: str) -> list[str]:
    return [] if _compiled_pattern(_BASE64).is_found_in(text) else ["invalid base64"]


def is_date(text: str) -> bool:
    """Return whether a text is a day in the years 0 to 9999."""
    match = _DATE.fullmatch(text)
    if match is None:
        return False
    year, month, day = map(int, match.groups())
    return 1 <= month <= 12 and 1 <= day <= calendar.monthrange(year or 4, month)[1]  # the year 0 is a leap year


def date_problems(text: str) -> list[str]:
    return [] if is_date(text) else ["invalid date"]


def datetime_problems(text: str) -> list[str]:
    """Return the problems of a date and time; as upstream, text after a second `t` is ignored."""
    day, t, rest = text.lower().partition("t")
    time = rest.partition("t")[0]
    is_time = (
        _compiled_pattern(_TIME).is_found_in(time) and time[:2] <= "23" and time[3:5] <= "59" and time[6:8] <= "59"
    )
    return [] if t and len(text) > 3 and is_date(day) and is_time else ["invalid datetime"]


FORMATS = {
    "dns1123Label": NamedFormat("DNS1123Label", _with_lengths_in_characters(dns1123_label_errors), 30),
    "dns1123Subdomain": NamedFormat("DNS1123Subdomain", _with_lengths_in_characters(dns1123_subdomain_errors), 60),
    "dns1035Label": NamedFormat("DNS1035Label", _with_lengths_in_characters(dns1035_label_errors), 30),
    "qualifiedName": NamedFormat("QualifiedName", qualified_name_errors, 60),
    "dns1123LabelPrefix": NamedFormat(
        "DNS1123LabelPrefix", _with_final_dash_allowed(_with_lengths_in_characters(dns1123_label_errors)), 30
    ),
    "dns1123SubdomainPrefix": NamedFormat(
        "DNS1123SubdomainPrefix", _with_final_dash_allowed(_with_lengths_in_characters(dns1123_subdomain_errors)), 60
    ),
    "dns1035LabelPrefix": NamedFormat(
        "DNS1035LabelPrefix", _with_final_dash_allowed(_with_lengths_in_characters(dns1035_label_errors)), 30
    ),
    "labelValue": NamedFormat("LabelValue", label_value_errors, 40),
    "uri": NamedFormat("URI", uri_problems, 1103, metered=True),
    "uuid": NamedFormat("uuid", uuid_problems, len(_UUID)),
    "byte": NamedFormat("byte", base64_problems, 84),
    "date": NamedFormat("date", date_problems, len(_TIME)),
    "datetime": NamedFormat("datetime", datetime_problems, len(_TIME)),
}
"""The format of each name. The lengths of the patterns are MaxRegexSize of format.go."""


def find_format_by_name(name: str) -> Optional:
    declared = FORMATS.get(name)
    return NONE if declared is None else Optional(declared)


def validate_format(deadline: Deadline, declared: NamedFormat, text: str) -> Optional:
    """Return the problems of the text; absent if the text has none."""
    problems = declared.problems_of(text, deadline)
    return Optional(lists.record_string_list(problems)) if problems else NONE


def validate_format_before_1_35(deadline: Deadline, declared: NamedFormat, text: str) -> Optional:
    """Return the problems in the wording before 1.35."""
    problems = [_wording_before_1_35(problem) for problem in declared.problems_of(text, deadline)]
    return Optional(lists.record_string_list(problems)) if problems else NONE


def _wording_before_1_35(problem: str) -> str:
    if problem.startswith("a valid label key "):
        return f"a qualified name {problem.removeprefix('a valid label key ')}"
    return f"{problem.removesuffix('bytes')}characters" if _TOO_LONG.search(problem) else problem


def _validation_cost(_: Any, declared: NamedFormat, text: str) -> int:
    return costs.pattern_match_cost(_, text, " " * declared.pattern_length)


def _validate_overload(implementation: Callable[..., Optional], since: Version, until: Version | None) -> Overload:
    return Overload(
        "validate",
        "format-validate",
        (FORMAT, STRING),
        optional_of(list_of(STRING)),
        implementation,
        member=True,
        since=since,
        until=until,
        cost=_validation_cost,
        metered=True,
    )


def _format_constant_overload(name: str, value: NamedFormat) -> Overload:
    return Overload(f"format.{name}", f"format.{name}", (), FORMAT, lambda: value, since=(1, 31))


FUNCTIONS = (
    Overload("format.named", "format-named", (STRING,), optional_of(FORMAT), find_format_by_name, since=(1, 31)),
    _validate_overload(validate_format_before_1_35, (1, 31), (1, 35)),
    _validate_overload(validate_format, (1, 35), None),
    *(_format_constant_overload(name, value) for name, value in FORMATS.items()),
)
