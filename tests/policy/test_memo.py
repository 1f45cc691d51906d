"""What is kept of earlier evaluations never changes an answer, whatever stands where an expression looks."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.literals import policies, request, validating
from webhook.attributes import Phase
from webhook.cluster.files import FilesCluster
from webhook.evaluation.validating import validate
from webhook.policy.memo import MOST_KEPT, Memo

VALUES = st.sampled_from([None, True, 1, 1.0, 0, -0.0, "", "1", "[]", "y" * 65, [], {}, ["a"], {"b": 1}, {"b": None}])
NESTED = st.recursive(VALUES, lambda each: st.lists(each, max_size=5) | st.dictionaries(st.sampled_from("abcde"), each))
SPECS = st.one_of(VALUES, st.dictionaries(st.sampled_from("ab"), NESTED, max_size=2))
OBJECTS = st.fixed_dictionaries(
    {"apiVersion": st.just("v1"), "kind": st.just("Pod"), "metadata": st.just({"name": "o"})}, optional={"spec": SPECS}
)
RULES = (
    "object.spec.a != 'x'",
    "!has(object.spec.a) || object.spec.a == 1",
    "object.?spec.?a.?b.orValue(2) == 1",
    "variables.kinds == 'dict' || type(object.spec.a) == type(object.spec.b)",
    "oldObject == null && string(object.spec.b) != '1'",
)
KINDS = [{"name": "kinds", "expression": "has(object.spec) && type(object.spec.a) == type({}) ? 'dict' : ''"}]
CONDITIONS = [{"name": "b", "expression": "!has(object.spec) || object.spec.?b.orValue('') != 'y'"}]


def loaded():
    written = [validating(rule, name=f"p{i}", variables=KINDS) for i, rule in enumerate(RULES)]
    return policies(*written, validating("true", name="conditions", matchConditions=CONDITIONS))


REUSED = loaded()


def said(loaded, obj):
    made = validate(request(obj, is_decoded=True), loaded, FilesCluster(), Phase.VALIDATE)
    return [(each.policy, each.evaluation, each.message) for each in made]


@given(OBJECTS)
@settings(max_examples=100, deadline=None)
def test_answers_are_those_of_a_first_evaluation(obj):
    assert said(REUSED, obj) == said(loaded(), obj)


@pytest.mark.parametrize(
    ("seen", "key"),
    [
        ({}, (0,)),
        ({"spec": {}}, (1,)),
        ({"spec": {"a": "x"}}, ("x",)),
        ({"spec": {"a": "y" * 65}}, None),
        ({"spec": {"a": []}}, (list,)),
        ({"spec": {"a": [1]}}, ((list, (int, "1")),)),
        ({"spec": {"a": [{"b": "x", "c": []}]}}, ((list, (dict, "b", "x", "c", list)),)),
        ({"spec": {"a": [[1]]}}, ((list, (list, (int, "1"))),)),
        ({"spec": {"a": [[[1]]]}}, None),
        ({"spec": {"a": [1] * 5}}, None),
        ({"spec": {"a": {"y" * 65: 1}}}, None),
        ({"spec": {"a": {"b": "y" * 65}}}, None),
        ({"spec": None}, None),
        ({"spec": {"a": True}}, ((bool, "True"),)),
        ({"spec": {"a": 1}}, ((int, "1"),)),
    ],
)
def test_keys(seen, key):
    assert Memo([("object", "spec", "a")]).key({"object": seen}) == key


def test_what_reads_a_fact_now_and_then_has_no_memo():
    facts = {"facts": "gpu"}
    certain = policies(validating("gpu.devices == null || object.metadata.name == 'a'", annotations=facts))
    guarded = policies(validating("object.metadata.name == 'a' || gpu.devices == null", annotations=facts))
    assert certain.policies[0].body().memo is not None
    assert guarded.policies[0].body().memo is None


def test_it_is_bounded():
    memo = Memo([("object", "name")])
    for number in range(3 * MOST_KEPT):
        memo.keep(memo.key({"object": {"name": str(number)}}), answer=True)
    assert sum(memo.answer((str(number),)) is not None for number in range(3 * MOST_KEPT)) <= MOST_KEPT
