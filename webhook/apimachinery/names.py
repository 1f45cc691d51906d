"""Which names Kubernetes accepts, and what is wrong with a refused name.

A function `…_errors` returns the messages of the API server about a name, with lengths in `unit`; an empty list for a
valid name. A function `…_fault` says for a message of claimgate what is wrong with a refused name, such as "it contains
`_`", and `…_fix` says how to correct the name. Neither decides whether a name is refused.

Source: k8s.io/apimachinery v0.36 pkg/api/validate/content/{dns,kube,path}.go and pkg/util/validation/validation.go.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

DNS_LABEL: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
"""An RFC 1123 label of any length: it may be part of a longer name."""
DNS_SUBDOMAIN: Final = re.compile(rf"{DNS_LABEL.pattern}(\.{DNS_LABEL.pattern})*")
DNS_1035_LABEL: Final = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
"""An RFC 1035 label of any length."""
LONGEST_LABEL: Final = 63
LONGEST_PORT_NAME: Final = 15
LONGEST_SUBDOMAIN: Final = 253
_USE_LABEL: Final = "use at most 63 lower-case letters, digits and dashes"
_USE_SUBDOMAIN: Final = "use lower-case letters, digits, dashes and dots, with a letter or digit at both ends"
_USE_KEY: Final = "use letters, digits, dashes, dots and underscores, optionally after a domain and a slash"
_USE_VALUE: Final = "use at most 63 letters, digits, dashes, dots and underscores"
_WITH_LETTER_OR_DIGIT: Final = " with a letter or digit"
_BEGIN: Final = f"begin{_WITH_LETTER_OR_DIGIT}"
_END: Final = f"end{_WITH_LETTER_OR_DIGIT}"
_BEGIN_AND_END: Final = f"begin and end{_WITH_LETTER_OR_DIGIT}"
_BEGIN_WITH_LETTER: Final = "begin with a letter"
_SUBDOMAIN_SIGNS: Final = re.compile(r"[-.a-z0-9]+")
_EMPTY_OR_DASHED_PART: Final = re.compile(r"\.[.-]|-\.")
_KEY: Final = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")
_LABEL_VALUE: Final = re.compile(rf"({_KEY.pattern})?")
_KEY_TEXT: Final = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character"
)
_CAPITAL: Final = re.compile("[A-Z]")
_SPACES: Final = {" ": "a space", "\t": "a tab", "\n": "a line break", "`": "a backtick"}


def object_as_text(kind: str, namespace: str, name: str) -> str:
    """Name an object for a message: `ResourceClaimTemplate team-a/x`; without a namespace `Node a`."""
    return f"{kind} {namespace}/{name}" if namespace else f"{kind} {name}"


def dns1123_label_errors(text: str, unit: str = "bytes") -> list[str]:
    """Return what is wrong with a lowercase RFC 1123 label, such as the name of a namespace or a container."""
    is_label = DNS_LABEL.fullmatch(text) is not None
    if is_label and len(text) <= LONGEST_LABEL:
        return []
    complaints = _length_errors(text, LONGEST_LABEL, unit)
    if not is_label:
        rule = (
            "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and "
            "end with an alphanumeric character"
        )
        is_dotted = has_form_of_subdomain(text)
        complaints.append(
            "must not contain dots" if is_dotted else _sentence_about_pattern(rule, DNS_LABEL, "my-name", "123-abc")
        )
    return complaints


def has_form_of_subdomain(text: str) -> bool:
    """Return whether DNS_SUBDOMAIN matches the whole text. For long texts with dots, this function is ten times as fast
    as the pattern.
    """
    if _SUBDOMAIN_SIGNS.fullmatch(text) is None or not (text[0].isalnum() and text[-1].isalnum()):
        return False
    return _EMPTY_OR_DASHED_PART.search(text) is None


def dns1123_subdomain_errors(text: str, unit: str = "bytes") -> list[str]:
    """Return what is wrong with a lowercase RFC 1123 subdomain: the name of most objects, or a prefix."""
    complaints = _length_errors(text, LONGEST_SUBDOMAIN, unit)
    if not has_form_of_subdomain(text):
        rule = (
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must "
            "start and end with an alphanumeric character"
        )
        complaints.append(_sentence_about_pattern(rule, DNS_SUBDOMAIN, "example.com"))
    return complaints


def dns1035_label_errors(text: str, unit: str = "bytes") -> list[str]:
    """Return what is wrong with a DNS-1035 label, such as the name of a Service or an API version."""
    complaints = _length_errors(text, LONGEST_LABEL, unit)
    if not DNS_1035_LABEL.fullmatch(text):
        rule = (
            "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic "
            "character, and end with an alphanumeric character"
        )
        complaints.append(_sentence_about_pattern(rule, DNS_1035_LABEL, "my-name", "abc-123"))
    return complaints


def qualified_name_errors(text: str) -> list[str]:
    """Return what is wrong with a qualified name or a label's key: `name` or `prefix/name`."""
    *prefixes, name = text.split("/")
    is_key = _KEY.fullmatch(name) is not None
    rule = (
        ""
        if is_key and len(prefixes) <= 1
        else _sentence_about_pattern(_KEY_TEXT, _KEY, "MyName", "my.name", "123-abc")
    )
    if len(prefixes) > 1:
        return [f"a valid label key {rule} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"]
    complaints = []
    for prefix in prefixes:
        of_prefix = dns1123_subdomain_errors(prefix) if prefix else ["must be non-empty"]
        complaints += [f"prefix part {complaint}" for complaint in of_prefix]
    of_name = _length_errors(name, LONGEST_LABEL) if name else ["must be non-empty"]
    complaints += [f"name part {complaint}" for complaint in of_name]
    if not is_key:
        complaints.append(f"name part {rule}")
    return complaints


def label_value_errors(text: str) -> list[str]:
    """Return what is wrong with a label's value."""
    complaints = _length_errors(text, LONGEST_LABEL)
    if not _LABEL_VALUE.fullmatch(text):
        rule = f"a valid label must be an empty string or {_KEY_TEXT.removeprefix('must ')}"
        complaints.append(_sentence_about_pattern(rule, _LABEL_VALUE, "MyValue", "my_value", "12345"))
    return complaints


def path_segment_errors(text: str) -> list[str]:
    """Return what is wrong with a segment of a URL's path, such as the name of a parameter."""
    if text in {".", ".."}:
        return [f"may not be '{text}'"]
    return [f"may not contain '{sign}'" for sign in ("/", "%") if sign in text]


def _length_errors(text: str, limit: int, unit: str = "bytes") -> list[str]:
    length = len(text) if text.isascii() else len(text.encode("utf-8", "replace"))
    return [f"must be no more than {limit} {unit}"] if length > limit else []


def _sentence_about_pattern(text: str, pattern: re.Pattern[str], *examples: str) -> str:
    shown = " or ".join(f"'{example}', " for example in examples)
    return f"{text} (e.g. {shown}regex used for validation is '{pattern.pattern}')"


def port_name_fault(name: str) -> str:
    """Say what is wrong with the name of a port; "" for a valid name (IsValidPortName)."""
    if len(name) > LONGEST_PORT_NAME:
        return f"it has more than {LONGEST_PORT_NAME} characters"
    fault = _fault_of_characters(name, "-") or _fault_of_ends(name)
    if fault is not None:
        return fault.text
    if "--" in name:
        return "it contains `--`"
    return "it has no letter" if not re.search("[a-z]", name) else ""


class NameFault(NamedTuple):
    """What is wrong with a refused name, such as "it ends with `-`", and how to correct the name. `fix` is "" if the
    name needs other characters.
    """

    text: str
    fix: str = ""


_UNKNOWN: Final = NameFault("it is not a valid name")


def label_fault(name: str, *, begins_with_letter: bool = False) -> str:
    """Say what is wrong with a label of RFC 1123, or with `begins_with_letter`, with a label of RFC 1035."""
    return _fault_of_label(name, begins_with_letter=begins_with_letter).text


def label_fix(name: str, *, begins_with_letter: bool = False) -> str:
    """Say how to correct a label of RFC 1123, or with `begins_with_letter`, a label of RFC 1035."""
    fix = _fault_of_label(name, begins_with_letter=begins_with_letter).fix or _USE_LABEL
    if not begins_with_letter or name[:1].isalpha() or fix == _BEGIN_WITH_LETTER:
        return fix
    if fix in (_BEGIN, _END, _BEGIN_AND_END):
        return _BEGIN_WITH_LETTER if name[-1].isalnum() else f"{_BEGIN_WITH_LETTER}, and {_END}"
    return f"{fix}, and {_BEGIN_WITH_LETTER}"


def subdomain_fault(name: str) -> str:
    """Say what is wrong with a subdomain of RFC 1123, as in most names of objects."""
    return (_fault_of_subdomain(name) or _UNKNOWN).text


def subdomain_fix(name: str) -> str:
    """Say how to correct a subdomain of RFC 1123."""
    return (_fault_of_subdomain(name) or _UNKNOWN).fix or _USE_SUBDOMAIN


def qualified_name_fault(key: str) -> str:
    """Say what is wrong with the key of a label, or with another name of the form `name` or `domain/name`."""
    return _fault_of_qualified_name(key).text


def qualified_name_fix(key: str) -> str:
    """Say how to correct the key of a label, or another name of the form `name` or `domain/name`."""
    return _fault_of_qualified_name(key).fix or _USE_KEY


def label_value_fault(value: str) -> str:
    """Say what is wrong with the value of a label."""
    return _fault_of_label_value(value).text


def label_value_fix(value: str) -> str:
    """Say how to correct the value of a label."""
    return _fault_of_label_value(value).fix or _USE_VALUE


def forbidden_character_fault(name: str, allowed: str) -> str:
    """Name the first character that is neither an ASCII letter nor an ASCII digit nor in `allowed`; "" without one."""
    match = re.search(rf"[^A-Za-z0-9{re.escape(allowed)}]", name)
    if match is None:
        return ""
    sign = match[0]
    shown = f"`{sign}`" if sign.isprintable() else f"the character U+{ord(sign):04X}"
    return f"it contains {_SPACES.get(sign, shown)}"


def _fault_of_label(name: str, *, begins_with_letter: bool) -> NameFault:
    fault = _fault_of_characters(name, "-") or _fault_of_length(name, LONGEST_LABEL) or _fault_of_ends(name)
    if fault is None and begins_with_letter and name[0].isdigit():
        return NameFault(f"it begins with the digit `{name[0]}`", _BEGIN_WITH_LETTER)
    return fault or _UNKNOWN


def _fault_of_subdomain(name: str) -> NameFault | None:
    fault = _fault_of_characters(name, "-.") or _fault_of_length(name, LONGEST_SUBDOMAIN) or _fault_of_ends(name)
    signs = next((signs for signs in ("..", ".-", "-.") if signs in name), "")
    if fault is None and signs:
        return NameFault(f"it contains `{signs}`", "write a letter or digit on both sides of each dot")
    return fault


def _fault_of_qualified_name(key: str) -> NameFault:
    *domains, name = key.split("/")
    if len(domains) > 1:
        return NameFault(f"it contains {len(domains)} slashes")
    for domain in domains:
        fault = _fault_of_subdomain(domain)
        if fault is not None:
            return _fault_of_side(fault, "before")
    fault = _fault_of_label_value(name)
    return _fault_of_side(fault, "after") if domains else fault


def _fault_of_side(fault: NameFault, side: str) -> NameFault:
    """Return a fault of a part of a qualified name, with the part: `side` is before or after the slash."""
    if fault.text.startswith("it contains"):
        return fault
    place, fix = f"{side} the slash", fault.fix
    if fix.endswith(_WITH_LETTER_OR_DIGIT):
        fix = f"{fix.removesuffix(_WITH_LETTER_OR_DIGIT)} the part {place}{_WITH_LETTER_OR_DIGIT}"
    elif fix:
        fix = f"{fix} {place}"
    return NameFault(f"{place}, {fault.text}", fix)


def _fault_of_label_value(value: str) -> NameFault:
    forbidden = forbidden_character_fault(value, "-._")
    if forbidden:
        return NameFault(forbidden)
    return _fault_of_length(value, LONGEST_LABEL) or _fault_of_ends(value) or _UNKNOWN


def _fault_of_characters(name: str, allowed: str) -> NameFault | None:
    # a user who fixes only one of two faults gets a second message
    capital, sign = _fault_of_capital_letter(name), forbidden_character_fault(name, allowed)
    text = f"{capital} and {sign.removeprefix('it contains ')}" if capital and sign else capital or sign
    return NameFault(text) if text else None


def _fault_of_capital_letter(name: str) -> str:
    capital = _CAPITAL.search(name)
    return f"it contains the capital letter `{capital[0]}`" if capital else ""


def _fault_of_length(name: str, longest: int) -> NameFault | None:
    if len(name) <= longest:
        return None
    text = f"it has {len(name)} characters, and at most {longest} are allowed"
    return NameFault(text, f"use at most {longest} characters")


def _fault_of_ends(name: str) -> NameFault | None:
    if not name:
        return NameFault("it is empty")
    begins, ends = f"begins with `{name[0]}`", f"ends with `{name[-1]}`"
    is_end_wrong = len(name) > 1 and not name[-1].isalnum()
    if name[0].isalnum():
        return NameFault(f"it {ends}", _END) if is_end_wrong else None
    return NameFault(f"it {begins} and {ends}", _BEGIN_AND_END) if is_end_wrong else NameFault(f"it {begins}", _BEGIN)
