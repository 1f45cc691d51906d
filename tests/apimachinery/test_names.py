"""Names as kubernetes v1.36 checks them (apimachinery pkg/api/validate/content)."""

import itertools

import pytest

from webhook.apimachinery import names


@pytest.mark.parametrize("name", ["a", "a-1", "a.b.c", "0", "x" * 253])
def test_a_subdomain_is_accepted(name):
    assert names.dns1123_subdomain_errors(name) == []


@pytest.mark.parametrize("name", ["", "A", "a_b", "-a", "a-", "a..b", "x" * 254])
def test_other_text_is_not_a_subdomain(name):
    assert names.dns1123_subdomain_errors(name)


def test_the_message_about_a_name_is_that_of_the_api_server():
    (found,) = names.dns1123_subdomain_errors("A")
    assert found == (
        "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start"
        " and end with an alphanumeric character (e.g. 'example.com', regex used for validation is"
        " '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
    )


@pytest.mark.parametrize(
    ("name", "complaint"),
    [
        ("a", ""),
        ("example.com/a_b", ""),
        ("", "name part must be non-empty"),
        ("/a", "prefix part must be non-empty"),
        ("a/b/c", "a valid label key must consist of"),
        ("A!/b", "prefix part a lowercase RFC 1123"),
        ("x" * 64, "name part must be no more than 63 bytes"),
        ("-a", "name part must consist of alphanumeric characters"),
    ],
)
def test_a_qualified_name(name, complaint):
    found = names.qualified_name_errors(name)
    assert bool(found) == bool(complaint)
    assert complaint in " ".join(found)


@pytest.mark.parametrize(("value", "good"), [("", True), ("a.b", True), ("-", False), ("x" * 64, False)])
def test_a_label_value(value, good):
    assert (names.label_value_errors(value) == []) is good


@pytest.mark.parametrize(("value", "good"), [("v1", True), ("1v", False), ("V", False), ("v" * 64, False)])
def test_a_dns_1035_label(value, good):
    assert (names.dns1035_label_errors(value) == []) is good


@pytest.mark.parametrize(("value", "good"), [("a", True), (".", False), ("..", False), ("a/b", False), ("50%", False)])
def test_a_path_segment(value, good):
    assert (names.path_segment_errors(value) == []) is good


def test_the_form_of_a_subdomain_is_that_of_the_pattern():
    texts = ("".join(signs) for size in range(7) for signs in itertools.product("a1-.A", repeat=size))
    differing = [t for t in texts if names.has_form_of_subdomain(t) != bool(names.DNS_SUBDOMAIN.fullmatch(t))]
    assert differing == []
    assert not names.has_form_of_subdomain("a\n")
