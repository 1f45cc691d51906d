"""What is remembered between reviews: parameters, candidates and what stands for them, and what ends it."""

from __future__ import annotations

from dataclasses import replace

from tests.literals import pod, policies, request, shipped_policies, validating
from webhook.attributes import JSON, Phase
from webhook.cluster.assumed_namespaces import AssumedNamespaces
from webhook.cluster.files import FilesCluster
from webhook.evaluation.validating import validate

PARAM_KIND = {"apiVersion": "v1", "kind": "ConfigMap"}
REF = {"name": "c", "namespace": "site", "parameterNotFoundAction": "Deny"}
NO_LIMIT = {"containers": [{"name": "a", "image": "x", "resources": {"requests": {"nvidia.com/gpu": "1"}}}]}


def config(**data: str) -> JSON:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "namespace": "site"}, "data": data}


def over_checks(**spec: JSON) -> list[JSON]:
    return validating(
        "problems.size() == 0",
        annotations={"checks": "pod-resources"},
        binding={"paramRef": REF},
        paramKind=PARAM_KIND,
        **spec,
    )


def said(loaded, obj: JSON, view: FilesCluster, **changes: JSON) -> list[tuple[str, str]]:
    made = validate(request(obj, is_decoded=True, **changes), loaded, view, Phase.VALIDATE)
    return [(each.action, each.param) for each in made]


def test_a_parameter_that_changes_is_read_again():
    loaded = policies(over_checks())
    strict, lenient = FilesCluster([config()]), FilesCluster([config(ignore="pod-resources/limit-required")])
    for _ in range(2):
        assert said(loaded, pod(**NO_LIMIT), strict) == [("deny", "site/c")]
        assert said(loaded, pod(**NO_LIMIT), lenient) == [("admit", "site/c")]
        assert said(loaded, pod(), FilesCluster()) == [("deny", "")]  # parameterNotFoundAction


def test_a_policy_whose_checks_say_nothing_still_has_conditions():
    conditions = [{"name": "labelled", "expression": "has(object.metadata.labels)"}]
    loaded = policies(over_checks(matchConditions=conditions))
    assert said(loaded, pod(), FilesCluster([config()])) == []


def test_conditions_about_a_parameter_are_asked_of_each_parameter():
    conditions = [{"name": "on", "expression": "params.data.on == 'yes'"}]
    loaded = policies(validating("false", binding={"paramRef": REF}, paramKind=PARAM_KIND, matchConditions=conditions))
    for _ in range(2):
        assert said(loaded, pod(), FilesCluster([config(on="yes")])) == [("deny", "site/c")]
        assert said(loaded, pod(), FilesCluster([config(on="no")])) == []


def test_what_is_created_has_a_changed_spec():
    loaded = policies(validating("false", annotations={"updates": "spec"}))
    view = FilesCluster()
    assert said(loaded, pod(), view) == [("deny", "")]
    assert said(loaded, pod(), view, operation="UPDATE", old=pod()) == []
    assert said(loaded, pod(), view, operation="UPDATE", old=pod(hostNetwork=True)) == [("deny", "")]


def test_a_pod_is_judged_alike_whoever_sends_it():
    """What an API server sends takes the short way, what a file holds the long one."""
    loaded = shipped_policies()
    claim = {"resourceClaims": [{"name": "a"}], "containers": [{"name": "a", "resources": {"claims": [{"name": "b"}]}}]}
    for spec in ({"containers": [{"name": "a"}]}, NO_LIMIT, claim):
        for operation, old in (("CREATE", None), ("UPDATE", pod()), ("DELETE", pod())):
            obj = None if operation == "DELETE" else pod(**spec)
            asked = request(obj or old, operation, old, object=obj)
            made = [
                [
                    replace(each, elapsed_s=0.0)
                    for each in validate(
                        replace(asked, is_decoded=is_decoded), loaded, AssumedNamespaces(FilesCluster()), phase
                    )
                ]
                for is_decoded in (True, False)
                for phase in Phase
            ]
            assert made[:2] == made[2:]
