"""Finds mutating policies that change their own result again, so that an object grows with every update.

An API server may call a mutation twice for one request, and calls it again for every update of the object
(https://kubernetes.io/docs/reference/access-authn-authz/mutating-admission-policy/, "idempotence"). Each policy is
tried on a small object of every kind that it names, and on the inputs of the suite in its folder: what is said was
seen, and nothing is said of what no sample reaches.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Final

from webhook.admission import fixtures
from webhook.apimachinery import paths
from webhook.apimachinery.attributes import JSON, GroupVersionKind, Operation
from webhook.cel.library.authorizer import ListedAuthorizer
from webhook.cluster.assumed_namespaces import ClusterWithAssumedNamespaces
from webhook.cluster.files import FilesCluster
from webhook.errors import ClaimgateError
from webhook.evaluation.mutating import apply_mutating_policies
from webhook.patch.diff import operations_between
from webhook.policy.compiled import Policy
from webhook.policy.field_names import named_kinds
from webhook.policy.load import Options
from webhook.policy.policy_set import PolicySet
from webhook.suites import own
from webhook.suites.case import Request
from webhook.suites.files import Suite

_POD_SPEC: Final[JSON] = {
    "containers": [{"name": "main", "image": "example.com/main:1", "resources": {"limits": {"cpu": "1"}}}]
}


def describe_repeated_change(policy: Policy, loaded: PolicySet, how: Options) -> str:
    """Return a sentence about the first sample that a policy changes twice; "" if there is none."""
    if policy.kind != "mutating":
        return ""
    # a policy that reinvokes would run twice within one request, and its third run would be judged
    once = replace(loaded, validating=(), mutating=(replace(policy, reinvokes=False),))
    for sample in (*_minimal_requests(policy, loaded, how), *_requests_of_suite(policy, loaded, how)):
        if where := _changes_of_second_run(once, sample):
            name = sample.attributes.object["kind"]
            fix = "add a matchCondition that is false once the change is made"
            return f"applied to its own result it changes {where} of a {name} again: {fix}"
    return ""


def _changes_of_second_run(policies: PolicySet, sample: Request) -> str:
    cluster = ClusterWithAssumedNamespaces(FilesCluster(sample.context, is_whole=sample.context_is_whole))
    authorizer = ListedAuthorizer(sample.authorizer)
    first, decisions = apply_mutating_policies(sample.attributes, policies, cluster, authorizer=authorizer)
    if first is sample.attributes.object or any(each.evaluation == "error" for each in decisions):
        return ""
    second, _ = apply_mutating_policies(
        replace(sample.attributes, object=first), policies, cluster, authorizer=authorizer
    )
    changes = operations_between(first, second)
    return str(changes[0]["path"]) or "all" if changes else ""


def _minimal_requests(policy: Policy, loaded: PolicySet, how: Options) -> Iterator[Request]:
    """Yield a request to create a small object of each kind that the policy names."""
    for kind in filter(None, named_kinds(policy)):
        obj = _minimal_object(kind, how)
        attributes = fixtures.attributes_of_object(obj, how.table.row, operation=Operation.CREATE)
        yield Request(attributes=attributes, policies=loaded, context=loaded.params)


def _minimal_object(kind: GroupVersionKind, how: Options) -> JSON:
    head = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": {"name": "sample", "labels": {"app": "a"}}}
    if (kind.group, kind.kind) == ("", "Pod"):
        return {**head, "spec": _POD_SPEC}
    row = how.table.row(kind.group, kind.kind)
    for pod_set in row.podSets if row else ():
        if pod_set.embeds == "template" and not {"[", "{"} & set(pod_set.template):
            inner: JSON = {"metadata": {"labels": {"app": "a"}}, "spec": _POD_SPEC}
            for name in reversed(paths.parse_path(pod_set.template)):
                inner = {name: inner}
            return {**head, **inner}
    return head


def _requests_of_suite(policy: Policy, loaded: PolicySet, how: Options) -> Iterator[Request]:
    """Yield the requests of the suite beside a policy; a suite that cannot be read is skipped."""
    file = Path(policy.file).parent / "suite.yaml"
    if not policy.file or policy.file == "-" or not file.is_file():
        return
    suite = Suite(file=file, root=file.parent)
    try:
        for case in own.cases(suite):
            asked = own.request_of_case(case, suite, lambda: loaded, how)
            if asked.attributes.object is not None:
                yield replace(asked, context=(*loaded.params, *asked.context))
    except ClaimgateError:
        return
