"""Finds mutating policies that change their own result again. With such a policy, each update may grow an object.

An API server may call a mutation twice for one request, and calls it again for every update
(https://kubernetes.io/docs/reference/access-authn-authz/mutating-admission-policy/, "idempotence"). A policy is
tried on a valid object of each Kubernetes kind that it names, and on the inputs of its suite. Only observed changes are
reported. Parts that no sample reaches are not checked.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from msgspec import structs

from webhook.admission import fixtures
from webhook.apimachinery.attributes import Operation
from webhook.cel.library.authorizer import ListedAuthorizer
from webhook.cluster.files import FilesCluster
from webhook.cluster.layered import ClusterWithAssumedNamespaces
from webhook.errors import ClaimgateError
from webhook.evaluation.mutating import apply_mutating_policies
from webhook.evaluation.request_context import request_context
from webhook.patch.diff import operations_between
from webhook.policy.compiled import Policy
from webhook.policy.field_names import named_kinds
from webhook.policy.load import Options
from webhook.policy.policy_set import PolicySet
from webhook.suites import own
from webhook.suites.case import Request
from webhook.suites.files import Suite
from webhook.suites.valid_objects import valid_objects


def describe_repeated_change(policy: Policy, loaded: PolicySet, options: Options) -> str:
    """Return a sentence about the first sample that a policy changes twice; "" without one."""
    if policy.kind != "mutating":
        return ""
    # with reinvocation, the first request would already run the policy twice
    once = replace(loaded, validating=(), mutating=(replace(policy, reinvokes=False),))
    for sample in (*_requests_of_valid_objects(policy, loaded), *_requests_of_suite(policy, loaded, options)):
        if changed_fields := _changes_of_second_run(once, sample):
            name = sample.attributes.object["kind"]
            fix = "add a matchCondition that is false once the change is made"
            return f"applied to its own result it changes {changed_fields} of a {name} again: {fix}"
    return ""


def _changes_of_second_run(policies: PolicySet, sample: Request) -> str:
    cluster = ClusterWithAssumedNamespaces(FilesCluster(sample.context, is_whole=sample.context_is_whole))
    authorizer = ListedAuthorizer(sample.authorizer)
    first_request = request_context(policies, sample.attributes, cluster, authorizer=authorizer)
    first, decisions = apply_mutating_policies(first_request)
    if first is sample.attributes.object or any(each.evaluation == "error" for each in decisions):
        return ""
    second_request = replace(sample.attributes, object=first)
    second, _ = apply_mutating_policies(request_context(policies, second_request, cluster, authorizer=authorizer))
    changes = operations_between(first, second)
    return str(changes[0]["path"]) or "all" if changes else ""


def _requests_of_valid_objects(policy: Policy, loaded: PolicySet) -> Iterator[Request]:
    """Yield a request to create a full object of each kind that the policy names."""
    for kind in filter(None, named_kinds(policy)):
        objects = valid_objects().get(kind)
        if objects is not None:
            attributes = fixtures.attributes_of_object(objects.full, operation=Operation.CREATE)
            yield Request(attributes=attributes, policies=loaded, context=loaded.params)


def _requests_of_suite(policy: Policy, loaded: PolicySet, options: Options) -> Iterator[Request]:
    """Yield the requests of the cases in the policy's folder, up to the first case that cannot be read."""
    file = Path(policy.file).parent / "suite.yaml"
    if not policy.file or policy.file == "-" or not file.is_file():
        return
    suite = Suite(file=file, root=file.parent)
    try:
        for case in own.cases(suite):
            request = own.request_of_case(case, suite, lambda: loaded, options)
            if request.attributes.object is not None:
                yield structs.replace(request, context=(*loaded.params, *request.context))
    except ClaimgateError:
        return
