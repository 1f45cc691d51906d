"""Messages name the part of a name that breaks a rule, and not all rules."""

import pytest

from webhook.apimachinery import names
from webhook.apimachinery.names import (
    forbidden_character_fault,
    label_fault,
    label_fix,
    label_value_fault,
    label_value_fix,
    qualified_name_fault,
    qualified_name_fix,
    subdomain_fault,
    subdomain_fix,
)

_LABELS = {
    "Gpu": "it contains the capital letter `G`",
    "gpu_0": "it contains `_`",
    "gpu.0": "it contains `.`",
    "my gpu": "it contains a space",
    "gpü": "it contains `ü`",
    "a\x07": "it contains the character U+0007",
    "a`": "it contains a backtick",
    "-gpu": "it begins with `-`",
    "gpu-": "it ends with `-`",
    "-gpu-": "it begins with `-` and ends with `-`",
    "": "it is empty",
    "x" * 64: "it has 64 characters, and at most 63 are allowed",
}
_SUBDOMAINS = {
    "a..b": "it contains `..`",
    "a.-b": "it contains `.-`",
    "Team.a": "it contains the capital letter `T`",
    "a.b.": "it ends with `.`",
    "x" * 254: "it has 254 characters, and at most 253 are allowed",
}
_KEYS = {
    "nvidia.com/gpu/x": "it contains 2 slashes",
    "a b": "it contains a space",
    "/gpu": "before the slash, it is empty",
    "nvidia.com/": "after the slash, it is empty",
    "Nvidia.com/gpu": "it contains the capital letter `N`",
    "nvidia.com/-gpu": "after the slash, it begins with `-`",
    "x" * 64: "it has 64 characters, and at most 63 are allowed",
}
_VALUES = {"a b": "it contains a space", "-": "it begins with `-`", "a/b": "it contains `/`"}


@pytest.mark.parametrize(
    ("fault", "check", "expected"),
    [
        (label_fault, names.dns1123_label_errors, _LABELS),
        (subdomain_fault, names.dns1123_subdomain_errors, _SUBDOMAINS),
        (qualified_name_fault, names.qualified_name_errors, _KEYS),
        (label_value_fault, names.label_value_errors, _VALUES),
    ],
    ids=["a label", "a subdomain", "a key", "a value"],
)
def test_the_wrong_part_is_reported(fault, check, expected):
    assert {name: fault(name) for name in expected} == expected
    assert all(map(check, expected))  # Kubernetes refuses each of these names


def test_a_label_of_a_service_begins_with_a_letter():
    assert names.dns1035_label_errors("3d")
    assert label_fault("3d", begins_with_letter=True) == "it begins with the digit `3`"


def test_a_long_name_is_read_to_its_end():
    assert forbidden_character_fault(f"{'A' * 5000} ", "_") == "it contains a space"
    assert label_fault(f"{'a' * 5000}B/") == "it contains the capital letter `B` and `/`"


def test_a_valid_name_has_no_problem():
    assert label_fault("gpu") == subdomain_fault("a.b") == label_value_fault("A") == "it is not a valid name"


_LABEL_FIXES = {
    "gpu_0": "use at most 63 lower-case letters, digits and dashes",
    "-gpu": "begin with a letter or digit",
    "gpu-": "end with a letter or digit",
    "-gpu-": "begin and end with a letter or digit",
    "x" * 64: "use at most 63 characters",
}
_SUBDOMAIN_FIXES = {
    "a..b": "write a letter or digit on both sides of each dot",
    "a-.b": "write a letter or digit on both sides of each dot",
    "Team.a": "use lower-case letters, digits, dashes and dots, with a letter or digit at both ends",
    "x" * 254: "use at most 253 characters",
}
_KEY_FIXES = {
    "a b": "use letters, digits, dashes, dots and underscores, optionally after a domain and a slash",
    "nvidia.com/gpu-": "end the part after the slash with a letter or digit",
    "-nvidia.com/gpu": "begin the part before the slash with a letter or digit",
    f"nvidia.com/{'x' * 64}": "use at most 63 characters after the slash",
}
_VALUE_FIXES = {
    "a-": "end with a letter or digit",
    "a/b": "use at most 63 letters, digits, dashes, dots and underscores",
}


@pytest.mark.parametrize(
    ("fix", "expected"),
    [
        (label_fix, _LABEL_FIXES),
        (subdomain_fix, _SUBDOMAIN_FIXES),
        (qualified_name_fix, _KEY_FIXES),
        (label_value_fix, _VALUE_FIXES),
    ],
    ids=["a label", "a subdomain", "a key", "a value"],
)
def test_a_fix_names_the_wrong_part(fix, expected):
    assert {name: fix(name) for name in expected} == expected


def test_the_fix_of_a_label_of_a_service_names_the_letter_at_its_beginning():
    fixes = {name: label_fix(name, begins_with_letter=True) for name in ("3d", "d-", "3d-", "D", "3D")}
    assert fixes == {
        "3d": "begin with a letter",
        "d-": "end with a letter or digit",
        "3d-": "begin with a letter, and end with a letter or digit",
        "D": "use at most 63 lower-case letters, digits and dashes",
        "3D": "use at most 63 lower-case letters, digits and dashes, and begin with a letter",
    }
