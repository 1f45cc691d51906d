"""The names that Kubernetes accepts, and what it says of others.

Each check gives a tuple of complaints, () for a good name. Source: k8s.io/apimachinery v0.36
pkg/api/validate/content/{dns,kube,path}.go and pkg/util/validation/validation.go; the wording is the API server's.
"""

from __future__ import annotations

import re

_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = rf"{_LABEL}(\.{_LABEL})*"
_LABEL_1035 = "[a-z]([-a-z0-9]*[a-z0-9])?"
_KEY = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_LABEL_VALUE = f"({_KEY})?"
_KEY_TEXT = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character"
)

CEL_RESERVED = frozenset(
    (
        *("true", "false", "null", "in", "as", "break", "const", "continue", "else", "for", "function", "if", "import"),
        *("let", "loop", "package", "namespace", "return", "var", "void", "while"),
    )
)
"""kubernetes v1.36 pkg/apis/admissionregistration/validation/validation.go, celReserved."""


def _pattern(text: str, expression: str, *examples: str) -> str:
    shown = " or ".join(f"'{example}', " for example in examples)
    return f"{text} (e.g. {shown}regex used for validation is '{expression}')"


def _too_long(limit: int) -> str:
    return f"must be no more than {limit} bytes"


def subdomain(value: str) -> tuple[str, ...]:
    """A lowercase RFC 1123 subdomain: the name of a policy, a binding, a prefix."""
    problems = [_too_long(253)] if len(value.encode()) > 253 else []
    if not re.fullmatch(_SUBDOMAIN, value):
        text = (
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must"
            " start and end with an alphanumeric character"
        )
        problems.append(_pattern(text, _SUBDOMAIN.replace("\\.", "\\."), "example.com"))
    return tuple(problems)


def label_1035(value: str) -> tuple[str, ...]:
    """A DNS-1035 label: an API version, a kind in lower case."""
    problems = [_too_long(63)] if len(value.encode()) > 63 else []
    if not re.fullmatch(_LABEL_1035, value):
        text = (
            "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic"
            " character, and end with an alphanumeric character"
        )
        problems.append(_pattern(text, _LABEL_1035, "my-name", "abc-123"))
    return tuple(problems)


def qualified(value: str) -> tuple[str, ...]:
    """A qualified name, which is also a label's key: `name` or `prefix/name`."""
    prefix, slash, name = value.rpartition("/")
    shown = _pattern(_KEY_TEXT, _KEY, "MyName", "my.name", "123-abc")
    if "/" in prefix:
        return (f"a valid label key {shown} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')",)
    problems: list[str] = []
    if slash and not prefix:
        problems.append("prefix part must be non-empty")
    elif slash:
        problems += [f"prefix part {text}" for text in subdomain(prefix)]
    if not name:
        problems.append("name part must be non-empty")
    elif len(name.encode()) > 63:
        problems.append(f"name part {_too_long(63)}")
    if not re.fullmatch(_KEY, name):
        problems.append(f"name part {shown}")
    return tuple(problems)


def label_value(value: str) -> tuple[str, ...]:
    """A label's value."""
    problems = [_too_long(63)] if len(value.encode()) > 63 else []
    if not re.fullmatch(_LABEL_VALUE, value):
        text = f"a valid label must be an empty string or {_KEY_TEXT.removeprefix('must ')}"
        problems.append(_pattern(text, _LABEL_VALUE, "MyValue", "my_value", "12345"))
    return tuple(problems)


def path_segment(value: str) -> tuple[str, ...]:
    """A name that can stand in a URL's path: resourceNames, a parameter's name."""
    if value in {".", ".."}:
        return (f"may not be '{value}'",)
    return tuple(f"may not contain '{text}'" for text in ("/", "%") if text in value)


def is_cel_identifier(value: str) -> bool:
    """Say whether CEL reads the text as one name that is not reserved."""
    return bool(re.fullmatch(r"[_a-zA-Z][_a-zA-Z0-9]*", value, re.ASCII)) and value not in CEL_RESERVED
