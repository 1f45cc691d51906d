"""An expression in the style of another language gets a hint, and a valid expression gets none."""

from __future__ import annotations

import pytest

from tests.literals import policies, validating
from tests.rows import all_rows
from webhook.errors import PolicyError
from webhook.policy.expressions import HABITS, hints_for_habits

PYTHON = {
    "len(object.spec.containers) > 0": "`size(x)`",
    "has(object.spec) and has(object.metadata)": "write `&&`",
    "has(object.spec) or has(object.metadata)": "write `||`",
    "not has(object.spec)": "write `!x`",
    "'a' not in object.metadata.labels": "write `!(x in y)`",
    "object.spec.nodeName == None": "a field that is not set is absent, not null",
    "object.spec.nodeName is None": "a field that is not set is absent, not null",
    "object.spec.nodeName is not None": "a field that is not set is absent, not null",
    "object.spec.nodeName is 'a'": "write `==`",
    "object.spec.hostNetwork == True": "write `true`",
    "object.spec.hostNetwork == False": "write `false`",
    "1 if object.spec.hostNetwork else 2": "write `condition ? a : b`",
    "object.spec.hostNetwork ? true elif false": "write `condition ? a : b`",
    "[c.name for c in object.spec.containers] == []": "to walk a list",
    "object.spec.containers.filter(lambda c: c.tty) == []": "cannot define functions",
    "any(c.tty for c in object.spec.containers)": "to walk a list",
    "all(object.spec.containers)": "to walk a list",
    "sum([1]) == 1": "write `list.sum()`",
    "max([1, 2]) == 2": "write `list.max()`",
    "sorted([1]) == [1]": "write `list.sort()`",
    "str(1) == '1'": "write `string(x)`",
    "float('1') > 0.0": "write `double(x)`",
    "isinstance(object.spec, dict)": "write `type(x) == string`",
    "f'{object.metadata.name}' == 'a'": "'%s of %d'.format",
    "'a' + 1 == 'a1'": "write `string(…)` around the number",
    "1 + 'a' == '1a'": "write `string(…)` around the number",
    "'%s' % object.metadata.name == 'a'": "'%s of %d'.format",
    "2 ** 3 == 8": "no operator for powers",
    "'abc'[0:2] == 'ab'": "`x.substring(1, 3)`",
    "object.metadata.labels.get('a') == 'b'": "`x[?'key'].orValue(…)`",
    "object.metadata.labels.items() == []": "to walk a map",
    "'a' in object.metadata.labels.keys()": "a map is walked by its keys",
    "'a' in object.metadata.labels.values()": "to walk a map",
    "'A'.lower() == 'a'": "write `x.lowerAscii()`",
    "' a'.strip() == 'a'": "write `x.trim()`",
    "'ab'.startswith('a')": "write `x.startsWith('…')`",
    "'ab'.endswith('b')": "write `x.endsWith('…')`",
    "re.match('a', object.metadata.name)": "write `x.matches('…')`",
}
REGO = {
    "x := object.spec.replicas": "declare `variables.NAME`",
    "object.metadata.name = 'a'": "`==` compares",
    "some c; object.spec.containers[c].tty": "to walk a list",
    "every c in object.spec.containers { c.tty }": "to walk a list",
    "object.spec.containers[_].tty": "to walk a list",
    "count(object.spec.containers) > 0": "`size(x)`",
    "startswith(object.metadata.name, 'a')": "write `x.startsWith('…')`",
    "endswith(object.metadata.name, 'a')": "write `x.endsWith('…')`",
    "contains(object.metadata.name, 'a')": "write `x.contains('…')`",
    "lower(object.metadata.name) == 'a'": "write `x.lowerAscii()`",
    "concat(',', ['a']) == 'a'": "write `list.join(', ')`",
    "sprintf('%s', ['a']) == 'a'": "'%s of %d'.format",
    "to_number('1') == 1": "write `int(x)`",
    "regex.match('a', object.metadata.name)": "write `x.matches('…')`",
    "object.get(object.metadata, 'name', '') == 'a'": "`x[?'key'].orValue(…)`",
    "input.review.object.metadata.name == 'a'": "the object is `object`",
    "data.allowed == 'a'": "data of a policy comes from `params`",
    "has(object.spec); has(object.metadata)": "write `&&`",
}
OTHERS = {
    ".spec.containers == []": "write `object` in front",
    "object.spec.containers[] == []": "to walk a list",
    "object.spec.containers | size(this) > 0": "there are no pipes",
    "select(object.spec.hostNetwork)": "write `list.filter(x, …)`",
    "map(object.spec.containers, c, c.name) == []": "write `list.map(x, …)`",
    "test(object.metadata.name)": "write `x.matches('…')`",
    "length(object.spec.containers) > 0": "`size(x)`",
    "object.metadata.name === 'a'": "write `==`",
    "object.metadata.name !== 'a'": "write `!=`",
    "object.spec.containers.every(c => c.tty)": "to walk a list",
    "object.spec.containers.map(c => c.tty) == []": "write the variable and the expression as arguments",
    "(object.spec.nodeName ?? 'a') == 'a'": "for a default value",
    "object.metadata?.labels == {}": "for a field that may be absent",
    "object.spec.nodeName == undefined": "a field that is not set is absent, not null",
    "object.spec.containers.includes('a')": "write `x in list`",
    "object.spec.containers.some(c, c.tty)": "to walk a list",
    "'A'.toLowerCase() == 'a'": "write `x.lowerAscii()`",
    "self.spec.replicas > 1": "the object is `object`",
    "request.object.metadata.name == 'a'": "the object is `object`",
    "object.metadata.creationTimestamp < now()": "cannot read the time",
    "object.metadata.creationTimestamp < now": "cannot read the time",
    "object.metadata.creationTimestamp < time.now()": "cannot read the time",
    "object.metadata.creationTimestamp < datetime.now()": "cannot read the time",
    "object.metadata.name =~ '^a'": "write `x.matches('…')`",
    "any c in object.spec.containers satisfies c.tty": "to walk a list",
    "object.metadata.name == $name": "does not insert a value",
}
EVERY = {**PYTHON, **REGO, **OTHERS}


def note(expression: str) -> str:
    with pytest.raises(PolicyError) as caught:
        policies(validating(expression))
    (problem,) = caught.value.problems
    return "\n".join(line[10:] for line in problem.excerpt.splitlines() if line.startswith("    hint: "))


@all_rows(("expression", "hint"), EVERY.items(), ids=EVERY)
def test_a_habit_gets_one_hint(expression: str, hint: str) -> None:
    lines = note(expression).splitlines()
    assert sum(hint in line for line in lines) == 1, lines
    assert not any("did you mean" in line for line in lines), lines


def test_every_foreign_habit_has_a_test_expression() -> None:
    tried = {habit for expression in EVERY for habit, _ in hints_for_habits(expression)}
    rest = {"is not", "min (", "upper (", ". upper (", "tostring", "oldSelf", "request . oldObject", ". test ("}
    assert HABITS.keys() - tried == rest


@all_rows(
    "expression",
    [
        "object.and.or.not == object.some.now",
        "'x and y or not z | := []' == object.metadata.name",
        "object.spec.containers.all(c, c.name.startsWith('a')) || [] == []",
        "object.?metadata.?name.or(optional.of('a')).orValue('') == 'a'",
        "object.length == 1 && object.data.self.input == 2",
    ],
)
def test_valid_cel_gets_no_hint(expression: str) -> None:
    assert [*hints_for_habits(expression)] == []


def test_a_misspelt_name_keeps_the_hint_about_the_name() -> None:
    assert note("objct.metadata.name == 'a'") == "did you mean `object`?"
