"""Reads `kyverno-test.yaml` for native policies, and for policies of Kyverno's kinds that are written in CEL.

Works like `kyverno test` (kyverno/kyverno 111e07b, cmd/cli/kubectl-kyverno/commands/test). Namespaces have the labels
of the values file. Policies that Kyverno derives for pod controllers are also evaluated. Every result for a resource
must equal the expected result (kyverno_results.py). Cases of policies without a native form are skipped with the
reason.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Any, Final

from msgspec import structs

from webhook.apimachinery.attributes import JSON, NAME_LABEL, Operation, UserInfo
from webhook.apimachinery.paths import get
from webhook.conversion.convert import convert_policy, is_convertible, reason_as_text
from webhook.errors import InputError, InputProblem, NotConverted
from webhook.manifests.models import GROUP, MUTATING, VALIDATING
from webhook.policy.load import Options
from webhook.suites.case import Case, Entry, SkippedCase, policies_of_case, unreadable_case
from webhook.suites.files import Suite
from webhook.suites.kyverno_results import (
    Evaluation,
    ResourceResult,
    difference_of_resources,
    request_for_resource,
    resource_with_namespace,
    results_for_resource,
)
from webhook.suites.recorded import cluster_with_kyverno_params, complete_manifest
from webhook.text.wording import shown
from webhook.yamltext import yamlfile

_NATIVE: Final = (VALIDATING, MUTATING)
_KINDS_WITHOUT_FLAG: Final = "ClusterPolicy or Policy"
"""The kinds of a policy that cannot be read, for a message, if the result has no flag such as `isValidatingPolicy`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Files:
    """The objects in the files that one test names."""

    suite: Suite
    policies: tuple[JSON, ...]
    resources: tuple[JSON, ...]
    context: tuple[JSON, ...]
    exceptions: tuple[JSON, ...]
    labels: Mapping[str, Mapping[str, str]]
    subresources: frozenset[str]
    operation: str
    user: UserInfo


@dataclass(frozen=True, slots=True, kw_only=True)
class _Policy:
    """A policy of a result: its native manifests and the compiled set, or why it has no native form."""

    manifests: tuple[JSON, ...] = ()
    policies: Callable[[], Any] = tuple
    is_native: bool = False
    rules: Mapping[str, str] = field(default_factory=dict)
    why_not: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Test:
    """One test of a file, with its files and its policies by name. Files and policies are read on first use."""

    suite: Suite
    files: Callable[[], _Files]
    policy: Callable[[str], _Policy]
    options: Options


def read_kyverno_cases(suite: Suite, documents: Sequence[yamlfile.Document], options: Options) -> Iterator[Entry]:
    """Yield the cases of one file: one for each result and resource.

    Raises:
        InputError: the file cannot be read.
    """
    file = suite.file
    for document in documents:
        written = document.value
        if not isinstance(written, dict) or written.get("kind") != "Test":
            raise InputError(InputProblem(message="expected kind `Test`", file=str(file), line=document.position()[0]))
        files = cache(partial(_files, written, suite))
        test = _Test(suite=suite, files=files, policy=cache(partial(_policy, files, options)), options=options)
        for index, result in enumerate(written.get("results") or ()):
            path = ("results", index)
            if mistake := _mistake(result) or _unknown_policy(result, test):
                yield unreadable_case(document, path, mistake)
            else:
                line, _ = document.position(path)
                yield from (structs.replace(entry, line=line) for entry in _entries(result, test))


def _mistake(result: JSON) -> str:
    """Return a sentence about a result that lacks a required field, or that is not a map; otherwise ""."""
    if not isinstance(result, dict):
        return f"expected a map, found `{shown(result)}`"
    missing = [key for key in ("policy", "result") if not isinstance(result.get(key), str)]
    return f"a result needs {' and '.join(missing)}" if missing else ""


def _unknown_policy(result: Mapping[str, Any], test: _Test) -> str:
    """Return a sentence if the policy of a result is in no file; "" if a file has the policy or cannot be read."""
    try:
        policies = _policies_named(test.files().policies, result["policy"])
    except InputError:  # for example, policies at addresses
        return ""
    return "" if policies else f"no policy named `{result['policy']}` in the files of the test"


def _entries(result: Mapping[str, Any], test: _Test) -> Iterator[Case | SkippedCase]:
    """Yield one case for each resource of a result."""
    reason = _reason_of_skip(result, test)
    for name in _resource_names_of_result(result, test.files):
        case = f"{test.suite.folder.name}/{result['policy']}/{result.get('kind', '*')}/{name}/{result['result']}"
        file = str(test.suite.file)
        runs = Case(
            id=case,
            suite=file,
            mismatches=partial(_mismatches, result, name, test),
            notes=partial(_notes, result, name, test),
        )
        skipped = reason or _reason_of_absent_patch(result, name, test)
        yield SkippedCase(id=case, suite=file, why=skipped) if skipped else runs


def _reason_of_absent_patch(result: Mapping[str, Any], name: str, test: _Test) -> str:
    """Return why a case is skipped if the file of patched resources lacks the resource, as in Kyverno; otherwise ""."""
    file = result.get("patchedResources")
    if not file or result.get("failOnMissingResources"):
        return ""
    try:
        _find_resources(test.suite.objects([str(file)]), result.get("kind"), name)
    except InputError:
        return "the file of patchedResources does not have the resource"
    return ""


def _reason_of_skip(result: Mapping[str, Any], test: _Test) -> str:
    try:
        policies = _policies_named(test.files().policies, result["policy"])
        if not policies:
            return ""
        kind = str(policies[0].get("kind"))
        if kind not in _NATIVE and not is_convertible(policies[0]):
            return _not_evaluated(kind)
        if not result.get("resources") and result.get("resourceSpecs"):
            return "resourceSpecs are not read"
        if result.get("kind") in test.files().subresources:
            return "subresources are not evaluated"
        if kind not in _NATIVE and any(_is_exception_to(each, policies[0]) for each in test.files().exceptions):
            return "exceptions of Kyverno are not evaluated"
        return test.policy(result["policy"]).why_not
    except InputError:
        flags = [key for key, value in result.items() if key.startswith("is") and value is True]
        kind = str(flags[0]).removeprefix("is") if flags else _KINDS_WITHOUT_FLAG
        return "" if kind in _NATIVE else _not_evaluated(kind)


def _not_evaluated(kind: str) -> str:
    return f"policies of kind {kind} are not evaluated, only those in CEL"


def _is_exception_to(exception: JSON, policy: JSON) -> bool:
    names = [get(each, ("name",)) for each in get(exception, ("spec", "policyRefs")) or ()]
    names += [get(each, ("policyName",)) for each in get(exception, ("spec", "exceptions")) or ()]
    return _name(policy) in names


def _policies_named(policies: Sequence[JSON], name: str) -> Sequence[JSON]:
    """`name` may be `namespace/name`."""
    namespace, _, plain = name.rpartition("/")
    return [
        policy
        for policy in policies
        if isinstance(policy, dict)
        and not str(policy.get("kind", "")).endswith("Binding")
        and _name(policy) == plain
        and get(policy, ("metadata", "namespace"), "") in ((namespace,) if namespace else ("", None, "default"))
    ] or [
        policy for policy in policies if not namespace and isinstance(policy, dict) and _is_policy_named(policy, plain)
    ]


def _is_policy_named(policy: JSON, name: str) -> bool:
    return not str(policy.get("kind", "")).endswith("Binding") and _name(policy) == name


def _policy(files: Callable[[], _Files], options: Options, name: str) -> _Policy:
    """Return the native form of a policy of the files.

    Raises:
        InputError: the files cannot be read.
    """
    policies = files().policies
    first = _policies_named(policies, name)[0]
    if first.get("kind") in _NATIVE:
        manifests = tuple(_policy_with_bindings(policies, first))
        return _Policy(
            manifests=manifests, policies=cache(partial(policies_of_case, manifests, options)), is_native=True
        )
    try:
        converted = convert_policy(first, options)
    except NotConverted as error:
        return _Policy(why_not=f"{first['kind']}: {reason_as_text(error)}")
    return _Policy(manifests=converted.manifests, policies=lambda: converted.policies, rules=converted.rules)


def _resource_names_of_result(result: Mapping[str, Any], files: Callable[[], _Files]) -> Sequence[str]:
    """Return the names of the resources of a result. A result without names is about all resources of its kind. If the
    files have no resource of the kind, return `*`.
    """
    if result.get("resources"):
        return [str(name) for name in result["resources"]]
    try:
        return [_name(resource) for resource in files().resources if _is_of_kind(resource, result.get("kind"))] or ["*"]
    except InputError:
        return ["*"]


def _files(test: Mapping[str, Any], suite: Suite) -> _Files:
    values = [*_objects_named_in_test(test, "variables", suite), test.get("values")]
    values = [each for each in values if isinstance(each, dict)]
    user = next((one.get("userInfo") or {} for one in _objects_named_in_test(test, "userinfo", suite)), {})
    operations = (get(each, ("globalValues", "request.operation")) for each in values)
    return _Files(
        suite=suite,
        policies=_objects_named_in_test(test, "policies", suite),
        resources=_objects_named_in_test(test, "resources", suite),
        context=(
            *_objects_named_in_test(test, "paramResources", suite),
            *_objects_named_in_test(test, "clusterResources", suite),
        ),
        exceptions=_objects_named_in_test(test, "exceptions", suite),
        labels={
            one["name"]: one.get("labels") or {} for value in values for one in value.get("namespaceSelector") or ()
        },
        subresources=frozenset(
            str(get(each, ("subresource", "kind"))) for value in values for each in value.get("subresources") or ()
        ),
        operation=next((str(each) for each in operations if each in ("CREATE", "UPDATE", "DELETE")), "CREATE"),
        user=UserInfo(username=user.get("username") or "", groups=tuple(user.get("groups") or ())),
    )


def _objects_named_in_test(test: Mapping[str, Any], key: str, suite: Suite) -> tuple[JSON, ...]:
    names = test.get(key) or ()
    return suite.objects([names] if isinstance(names, str) else names)


def _is_of_kind(resource: JSON, kind: str | None) -> bool:
    return isinstance(resource, dict) and kind in (None, resource.get("kind"))


def _name(resource: JSON) -> str:
    return str(get(resource, ("metadata", "name"), ""))


def _find_resources(resources: Sequence[JSON], kind: str | None, name: str) -> Sequence[JSON]:
    """Return the resources of a kind by `name` or `namespace/name`.

    Raises:
        InputError: the resource does not exist.
    """
    namespace, _, plain = name.rpartition("/")
    named = [
        resource
        for resource in resources
        if _is_of_kind(resource, kind) and _name(resource) == plain and namespace in ("", _namespace(resource))
    ]
    if not named:
        raise InputError(InputProblem(message=f"no {kind or 'resource'} named `{name}` in the files of the test"))
    return named


def _namespace(resource: JSON) -> str:
    return str(get(resource, ("metadata", "namespace")) or "default")


def _mismatches(result: Mapping[str, Any], name: str, test: _Test) -> tuple[str, ...]:
    """Return how the results of the policy for a resource differ from the expected result."""
    resources = _find_resources(test.files().resources, result.get("kind"), name)
    return tuple(text for resource in resources for text in _differences(result, resource, test))


def _differences(result: Mapping[str, Any], resource: JSON, test: _Test) -> Iterator[str]:
    results = list(_results(result, resource, test))
    spoken = [each for each in results if each.status not in ("excluded", "not found")]
    if results and all(each.status == "not found" for each in results):
        yield f"result: expected {result['result']}, but the policy does not match: {results[0].message}"
    for each in spoken:
        patched = result.get("patchedResources")
        if patched and (text := _difference_of_patch(str(patched), resource, each, test)):
            yield text
        elif each.status != result["result"]:
            yield f"result: expected {result['result']}, found {each.status}: {each.message}".removesuffix(": ")


def _difference_of_patch(file: str, resource: JSON, result: ResourceResult, test: _Test) -> str:
    expected = _find_resources(test.suite.objects([file]), resource.get("kind"), _name(resource))[0]
    return difference_of_resources(
        resource_with_namespace(expected, _namespace_written(result.resource)), result.resource
    )


def _namespace_written(resource: JSON) -> str:
    return str(get(resource, ("metadata", "namespace")) or "")


def _results(result: Mapping[str, Any], resource: JSON, test: _Test) -> Iterator[ResourceResult]:
    files, policy = test.files(), test.policy(result["policy"])
    operation = Operation(str(result.get("operation") or files.operation).upper())
    attributes = request_for_resource(resource, operation, files.user, test.options)
    evaluation = Evaluation(
        manifests=policy.manifests,
        policies=policy.policies(),
        cluster=cluster_with_kyverno_params(
            files.context, policy.manifests, tuple(_namespaces(files, attributes.namespace))
        ),
        is_native=policy.is_native,
        rules=policy.rules,
    )
    rule = result.get("rule")
    for each in results_for_resource(attributes, evaluation):
        if not policy.rules or not rule or each.rule in (rule, f"autogen-{rule}", f"autogen-cronjob-{rule}"):
            yield each


def _notes(result: Mapping[str, Any], name: str, test: _Test) -> tuple[str, ...]:
    """Return a note if a case passes only because the policy does not match the resource."""
    resources = _find_resources(test.files().resources, result.get("kind"), name)
    statuses = [each.status for resource in resources for each in _results(result, resource, test)]
    if result["result"] in ("pass", "skip") or not all(status == "excluded" for status in statuses):
        return ()
    return ("the policy does not match the resource, which Kyverno counts as passed",)


def _policy_with_bindings(policies: Sequence[JSON], policy: JSON) -> Iterator[JSON]:
    """Yield a native policy and its bindings. If the policy has no binding, yield a binding that applies everywhere."""
    yield complete_manifest(policy)
    bindings = [
        binding for binding in policies if _is_native(binding) and get(binding, ("spec", "policyName")) == _name(policy)
    ]
    yield from map(complete_manifest, bindings)
    if not bindings:
        actions = {"validationActions": ["Deny"]} if policy["kind"] == VALIDATING else {}
        yield {
            "apiVersion": policy["apiVersion"],
            "kind": f"{policy['kind']}Binding",
            "metadata": {"name": f"{_name(policy)}-default"},
            "spec": {"policyName": _name(policy), **actions},
        }


def _is_native(policy: JSON) -> bool:
    return isinstance(policy, dict) and str(policy.get("apiVersion", "")).startswith(f"{GROUP}/")


def _namespaces(files: _Files, used: str) -> Iterator[JSON]:
    """Yield the Namespaces of the resources, the values file, and the request."""
    yield from (namespace for namespace in files.resources if _is_of_kind(namespace, "Namespace"))
    for name in dict.fromkeys((*files.labels, used)):
        labels = {NAME_LABEL: name, **files.labels.get(name, {})}
        yield {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}
