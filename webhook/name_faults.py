"""What is wrong with a name that Kubernetes refuses, in the words of our messages: "it contains `_`".

A reader who is told all the rules of a name has to find the one that the name breaks; here that is found for him. Which
names are refused is the matter of names.py, and nothing here decides it: each function is asked about a name that was.
"""

from __future__ import annotations

import re
from typing import Final

from webhook.names import LONGEST_LABEL, LONGEST_SUBDOMAIN

_CAPITAL: Final = re.compile("[A-Z]")
_UNKNOWN: Final = "it is not a valid name"
_SPACES: Final = {" ": "a space", "\t": "a tab", "\n": "a line break", "`": "a backtick"}


def label_fault(name: str, *, begins_with_letter: bool = False) -> str:
    """Say what is wrong with a label of RFC 1123, or of RFC 1035, which begins with a letter."""
    fault = _fault_of_characters(name, "-") or _fault_of_length(name, LONGEST_LABEL) or _fault_of_ends(name)
    if not fault and begins_with_letter and name[0].isdigit():
        return f"it begins with the digit `{name[0]}`"
    return fault or _UNKNOWN


def subdomain_fault(name: str) -> str:
    """Say what is wrong with a subdomain of RFC 1123, which is what most names of objects are."""
    return _fault_of_subdomain(name) or _UNKNOWN


def qualified_name_fault(key: str) -> str:
    """Say what is wrong with the key of a label, or another name that may have a domain and a slash before it."""
    *domains, name = key.split("/")
    if len(domains) > 1:
        return f"it contains {len(domains)} slashes"
    for domain in domains:
        fault = _fault_of_subdomain(domain)
        if fault:
            return fault if fault.startswith("it contains") else f"before the slash, {fault}"
    fault = label_value_fault(name)
    return fault if not domains or fault.startswith("it contains") else f"after the slash, {fault}"


def label_value_fault(value: str) -> str:
    """Say what is wrong with the value of a label."""
    return (
        forbidden_character_fault(value, "-._")
        or _fault_of_length(value, LONGEST_LABEL)
        or _fault_of_ends(value)
        or _UNKNOWN
    )


def _fault_of_subdomain(name: str) -> str:
    fault = _fault_of_characters(name, "-.") or _fault_of_length(name, LONGEST_SUBDOMAIN) or _fault_of_ends(name)
    signs = next((signs for signs in ("..", ".-", "-.") if signs in name), "")
    return fault or (f"it contains `{signs}`" if signs else "")


def _fault_of_characters(name: str, allowed: str) -> str:
    """Say which capital letter and which forbidden sign come first: whoever mends one of them has to mend both."""
    capital, sign = _fault_of_capital_letter(name), forbidden_character_fault(name, allowed)
    return f"{capital} and {sign.removeprefix('it contains ')}" if capital and sign else capital or sign


def _fault_of_capital_letter(name: str) -> str:
    capital = _CAPITAL.search(name)
    return f"it contains the capital letter `{capital[0]}`" if capital else ""


def forbidden_character_fault(name: str, allowed: str) -> str:
    """Say which character comes first that is neither a letter or digit nor allowed."""
    match = re.search(rf"[^A-Za-z0-9{re.escape(allowed)}]", name)
    if match is None:
        return ""
    sign = match[0]
    shown = f"`{sign}`" if sign.isprintable() else f"the character U+{ord(sign):04X}"
    return f"it contains {_SPACES.get(sign, shown)}"


def _fault_of_length(name: str, longest: int) -> str:
    return f"it has {len(name)} characters, and at most {longest} are allowed" if len(name) > longest else ""


def _fault_of_ends(name: str) -> str:
    """Say which end of a name is not a letter or digit, or return ""."""
    if not name:
        return "it is empty"
    if not name[0].isalnum():
        return f"it begins with `{name[0]}`"
    return "" if name[-1].isalnum() else f"it ends with `{name[-1]}`"
