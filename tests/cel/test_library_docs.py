"""Every function is documented with signature, value and error, and every documented example is true."""

import re
from importlib import import_module

import pytest

from tests.rows import all_rows
from webhook.cel import CostMeter, Environment, compiled_engine
from webhook.cel.equality import are_equal
from webhook.cel.library import LIBRARIES, all_overloads
from webhook.cel.library.authorizer import AUTHORIZER, ListedAuthorizer, authorizer_of
from webhook.errors import EvaluationError

EXAMPLE = re.compile(r"^(?: {4})?(\S.*?) +// (.+)$", re.MULTILINE)
DECISIONS = ListedAuthorizer(
    (
        {"verb": "get", "resource": "secrets", "namespace": "team", "allowed": True, "reason": "RBAC: allowed"},
        {"verb": "get", "path": "/healthz", "allowed": False},
        {"verb": "list", "resource": "pods", "allowed": False, "error": "no kubelet"},
        {
            "user": "system:serviceaccount:team:robot",
            "verb": "create",
            "group": "apps",
            "resource": "web",
            "allowed": True,
        },
    )
)
ENVIRONMENT = Environment(version=(1, 37), variables={"authorizer": AUTHORIZER}, mutation=True)
DOCUMENTED = [name for name in LIBRARIES if name != "standard"]


def _document(library: str) -> str:
    return import_module(f"webhook.cel.library.{library}").__doc__ or ""


def _evaluate(expression: str) -> object:
    program = compiled_engine().compile(expression, ENVIRONMENT)
    return program.evaluate({"authorizer": authorizer_of("alice", DECISIONS)}, CostMeter())


EXAMPLES = [
    pytest.param(expression, expected, id=f"{library}: {expression}")
    for library in LIBRARIES
    for expression, expected in EXAMPLE.findall(_document(library))
]


@all_rows(("expression", "expected"), EXAMPLES)
def test_documented_example_is_true(expression: str, expected: str) -> None:
    if expected.startswith("error: "):
        with pytest.raises(EvaluationError) as caught:
            _evaluate(expression)
        assert str(caught.value).startswith(expected.removeprefix("error: "))
    else:
        assert are_equal(_evaluate(expression), _evaluate(expected))


@all_rows("library", DOCUMENTED)
def test_every_function_has_signature_and_examples(library: str) -> None:
    module = import_module(f"webhook.cel.library.{library}")
    examples = EXAMPLE.findall(_document(library))
    for name in {overload.name for overload in module.FUNCTIONS if not overload.name.startswith("@")}:
        if name.startswith("format.") and name != "format.named":
            continue  # one entry for all constant formats
        assert re.search(rf"^(?:\S+\.)?{re.escape(name)}\(.*\) -> ", _document(library), re.MULTILINE), name
        mine = [expected for expression, expected in examples if f"{name}(" in expression]
        assert [each for each in mine if not each.startswith("error")], f"{name} has no example"
        assert [each for each in mine if each.startswith("error")], f"{name} has no error"


def test_every_library_is_listed_once() -> None:
    assert len(LIBRARIES) == len(set(LIBRARIES))
    assert len(all_overloads()) > 300


def test_library_modules_declare_overloads_with_unique_ids_per_version() -> None:
    for version in [(1, minor) for minor in range(30, 38)]:
        seen = [
            (each.name, each.id)
            for each in all_overloads()
            if each.since <= version and (each.until is None or version < each.until)
        ]
        assert len(seen) == len(set(seen)), version
