"""Every regular expression of the program needs linear time, or is listed with its limits in docs/user-text.md.

`python -m tests.user_text_page` rewrites the list of expressions.
"""

from __future__ import annotations

import ast
import random
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from time import process_time
from typing import Any

import pytest

from tests import user_text_page
from tests.backtracking import Use, why_not_linear
from tests.regular_expressions import ROOT, Expression, find_expressions, names_of_fields
from tests.rows import all_rows
from webhook.facts.device_failures.probes import read_model_server_patterns
from webhook.facts.gpu.devices import read_device_catalogue
from webhook.facts.volcano.commands import _ASSIGNED, _READ_INTO


def _use(home: str, expression: Expression) -> Use:
    named = user_text_page.USES.get(home.partition("[")[0])
    return named[0] if named else expression.use


def test_each_expression_takes_linear_time() -> None:
    quadratic = {
        home: why
        for home, each in find_expressions().items()
        if each.pattern is not None and home not in user_text_page.BOUNDED
        if (why := why_not_linear(each.pattern, _use(home, each)))
    }
    assert quadratic == {}, (
        "write it so that no text is read in two ways, search with RE2 (webhook/cel/library/patterns.py), or list it "
        "with who bounds it in tests/user_text_page.py"
    )


def test_listed_expressions_cannot_be_proven_linear() -> None:
    """Remove the row of an expression that is linear."""
    for home in user_text_page.BOUNDED:
        expression = find_expressions()[home]
        pattern = expression.pattern
        assert pattern is None or why_not_linear(pattern, _use(home, expression)), f"{home} is linear: delete it"


def test_the_lists_name_expressions_that_exist() -> None:
    expressions = find_expressions()
    homes = {home.partition("[")[0] for home in expressions} | set(expressions)
    assert {*user_text_page.USES, *user_text_page.BOUNDED} <= homes
    made = {home for home, each in expressions.items() if each.pattern is None}
    assert made <= user_text_page.BOUNDED.keys(), "say who bounds it in tests/user_text_page.py"


def test_the_page_lists_the_caches_of_the_code() -> None:
    assert user_text_page.PAGE.read_text() == user_text_page.page(), "run make docs"


def test_expressions_are_compiled_only_with_re() -> None:
    """With another name of `re`, expressions would be missing in the list."""
    for path in (path for folder in ("webhook", "claimgate", "certs") for path in (ROOT / folder).rglob("*.py")):
        lines = [
            line for line in path.read_text().splitlines() if re.match(r"\s*(from re import|import\b.*\bre\b)", line)
        ]
        for node in ast.walk(ast.parse("\n".join(map(str.strip, lines)))):
            names = [each.name for each in node.names if each.asname] if isinstance(node, ast.Import) else []
            assert "re" not in names, f"{path}: import re by its name"
            if isinstance(node, ast.ImportFrom) and node.module == "re":
                assert {each.name for each in node.names} <= {"Match", "Pattern"}, f"{path}: import re by its name"


SHIPPED: Mapping[str, Callable[[], Iterator[tuple[Use, re.Pattern[str]]]]] = {
    "the forms of devices.yaml": lambda: (
        (Use.WHOLE, re.compile(row.form)) for row in read_device_catalogue().resources if row.form
    ),
    "model_servers.yaml": lambda: ((Use.ANYWHERE, each) for each in _fields(read_model_server_patterns())),
}


def _fields(record: Any) -> Iterator[re.Pattern[str]]:
    values = [getattr(record, name) for name in names_of_fields(record)]
    yield from (each for each in values if isinstance(each, re.Pattern))


@pytest.mark.parametrize("name", SHIPPED)
def test_expressions_of_a_shipped_file_take_linear_time(name: str) -> None:
    patterns = [*SHIPPED[name]()]
    assert patterns
    for use, pattern in patterns:
        assert not why_not_linear(pattern, use), pattern.pattern


KNOWN: Sequence[tuple[str, Use, str]] = (
    (r"a*a*b", Use.BEGINNING, "quadratic"),
    (r"(a|a)*b", Use.BEGINNING, "exponential"),
    (r"(a*)*b", Use.BEGINNING, "exponential"),
    (r"(a+)+$", Use.BEGINNING, "exponential"),
    (r"^(([a-z])+.)+[A-Z]([a-z])+$", Use.BEGINNING, "exponential"),
    (r"a*b", Use.ANYWHERE, "quadratic"),
    (r"a*b", Use.BEGINNING, ""),
    (r"\s+$", Use.ANYWHERE, "quadratic"),
    (r"aa*b|a", Use.ANYWHERE, "quadratic"),
    (r"aa*b|a", Use.IN_A_ROW, "quadratic"),
    (r"(?:aa*b|a)*", Use.BEGINNING, "quadratic"),
    (r"a(?:.*b)?", Use.ANYWHERE, "quadratic"),
    (r"(?=.*x)y", Use.ANYWHERE, "quadratic"),
    (r"read(?: -[0-9]+)* [A-Z]", Use.ANYWHERE, ""),
    (r"\bread(?: -\w+)* [A-Z]", Use.ANYWHERE, "quadratic"),
    (r"\b[A-Z][A-Z0-9_]*=", Use.ANYWHERE, ""),
    (r"[A-Z][A-Z0-9_]*=", Use.ANYWHERE, "quadratic"),
    (r"a.*", Use.ANYWHERE, ""),
    (r"^a*b", Use.ANYWHERE, ""),
    (r"(?m)^a*b", Use.ANYWHERE, ""),
    (r"a*+a*+b", Use.BEGINNING, ""),
    (r"(?:ab|ab)*", Use.WHOLE, "exponential"),
    (r"\w{1,30}_", Use.ANYWHERE, ""),
    (r"[a-z0-9]([-a-z0-9]*[a-z0-9])?", Use.WHOLE, ""),
)


@pytest.mark.parametrize(("pattern", "use", "expected"), KNOWN)
def test_regular_expressions_are_classified_as_linear_or_not(pattern: str, use: Use, expected: str) -> None:
    assert why_not_linear(re.compile(pattern), use).partition(":")[0] == expected


@pytest.mark.nightly
@all_rows("home", lambda: find_expressions().keys() - user_text_page.BOUNDED.keys())
def test_matching_time_grows_linearly_with_repeated_input(home: str) -> None:
    """Four times the text needs far less than sixteen times the processor time."""
    expression = find_expressions()[home]
    assert expression.pattern is not None
    use = _use(home, expression)
    for text in _texts(expression.pattern):
        short, long = (_seconds(expression.pattern, use, text(number)) for number in (2_000, 8_000))
        assert long < 0.002 or long < 10 * short, text(4)


def _seconds(pattern: re.Pattern[Any], use: Use, text: Any) -> float:
    took = []
    for _ in range(3):
        began = process_time()
        _match(pattern, use, text)
        took.append(process_time() - began)
    return min(took)


def _match(pattern: re.Pattern[Any], use: Use, text: Any) -> None:
    if use is Use.WHOLE:
        pattern.fullmatch(text)
    elif use is Use.ANYWHERE:
        for _ in pattern.finditer(text):
            pass
    else:
        end = 0
        while (match := pattern.match(text, end)) and use is Use.IN_A_ROW and match.end() > end:
            end = match.end()


def _texts(pattern: re.Pattern[Any]) -> Iterator[Callable[[int], Any]]:
    """Yield functions that make texts of a length. They repeat pieces of the pattern and pairs of pieces, with and
    without an end that does not match.
    """
    is_text = isinstance(pattern.pattern, str)
    written = pattern.pattern if is_text else pattern.pattern.decode("latin-1")
    pieces = sorted({*re.findall(r"\w+|[^\w\\]", written), "a", "0", " ", "\n", '"', "\\", "-", "A_"})
    chosen = random.Random(47).sample([(a, b) for a in pieces for b in pieces], min(40, len(pieces) ** 2))
    for piece in [*pieces, *("".join(pair) for pair in chosen)]:
        for end in ("", "\x00!"):

            def make(number: int, piece: str = piece, end: str = end) -> Any:
                text = piece * number + end
                return text if is_text else text.encode("latin-1", "replace")

            yield make


def test_options_of_read_are_parsed_once() -> None:
    """One match has `read` with all of its options, so no text is read twice."""
    script = "$X; read " + "-read " * 2_000
    assert [match.span() for match in _READ_INTO.finditer(script)] == [(4, len(script))]


@pytest.mark.parametrize(
    ("script", "names"),
    [
        ("read -r LINE", {"LINE"}),
        ("read -r -d X; for NODE in a", {"X", "NODE"}),
        ("mapfile -t HOSTS < file", {"HOSTS"}),
        ("readarray HOSTS", {"HOSTS"}),
        ("A=1 B+=2 read -FOO=3", {"A", "B", "FOO"}),
        ("read -read -read", set()),
        ("read line", set()),
        ("thread X", set()),
    ],
)
def test_variables_that_a_script_sets(script: str, names: set[str]) -> None:
    assert {*_ASSIGNED.findall(script), *_READ_INTO.findall(script)} - {""} == names
