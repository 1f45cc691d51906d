"""Reads `kyverno-test.yaml` for ValidatingAdmissionPolicies and MutatingAdmissionPolicies.

Follows what `kyverno test` does with them (kyverno/kyverno 1.19, cmd/cli/kubectl-kyverno/commands/test): a policy
without a binding applies everywhere, namespaces have the labels of the values file, `fail` is a denial, `skip` a policy
that does not match, and a mutation is compared with patchedResources. Results of kyverno's own kinds are skipped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any, TypeAlias

from webhook.admission.decode import review_of_attributes
from webhook.admission.fixtures import attributes_of_object
from webhook.apimachinery.attributes import JSON, NAME_LABEL, Operation, UserInfo
from webhook.apimachinery.paths import get
from webhook.errors import CallError, InputError, Problem
from webhook.policy.load import Options
from webhook.suites import cases
from webhook.suites.case import Case, Entry, SkippedCase, unreadable_case
from webhook.suites.files import Suite
from webhook.text.wording import shown
from webhook.yamltext import yamlfile

_GROUP = "admissionregistration.k8s.io"
_NATIVE = ("ValidatingAdmissionPolicy", "MutatingAdmissionPolicy")
_OWN = "ClusterPolicy or Policy"
"""The kinds of a result without a flag whose policy cannot be found."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Files:
    """The objects in the files that one test names."""

    suite: Suite
    policies: tuple[JSON, ...]
    resources: tuple[JSON, ...]
    context: tuple[JSON, ...]
    labels: Mapping[str, Mapping[str, str]]
    user: UserInfo


_Lazy: TypeAlias = Callable[[], _Files]
"""Returns the files, which are read for the first case that needs them."""


def read_kyverno_cases(suite: Suite, how: Options) -> Iterator[Entry]:
    """Yield the cases of one file: one for each result and resource.

    Raises:
        InputError: the file cannot be read.
    """
    file = suite.file
    for document in yamlfile.read(suite.input):
        test = document.value
        if not isinstance(test, dict) or test.get("kind") != "Test":
            raise InputError(Problem(message="expected kind `Test`", file=str(file), line=document.position()[0]))
        files = cache(partial(_files, test, suite))
        for index, result in enumerate(test.get("results") or ()):
            path = ("results", index)
            if mistake := _mistake(result):
                yield unreadable_case(document, path, mistake)
            else:
                line, _ = document.position(path)
                yield from (replace(entry, line=line) for entry in _entries(result, suite, files, how))


def _mistake(result: JSON) -> str:
    """Return the mistake of a result that lacks a required field; "" if there is none."""
    if not isinstance(result, dict):
        return f"expected a map, found `{shown(result)}`"
    lacking = [key for key in ("policy", "result") if not isinstance(result.get(key), str)]
    return f"a result needs {' and '.join(lacking)}" if lacking else ""


def _entries(result: Mapping[str, Any], suite: Suite, files: _Lazy, how: Options) -> Iterator[Case | SkippedCase]:
    """Yield one case for each resource of a result, whether it is run or not."""
    kind = _kind(result, files)
    why = f"policies of kind {kind} are not evaluated, only {' and '.join(_NATIVE)}" if kind not in _NATIVE else ""
    for name in _resource_names_of_result(result, files):
        case = f"{suite.folder.name}/{result['policy']}/{result.get('kind', '*')}/{name}/{result['result']}"
        mismatches = partial(_mismatches, result, name, files, how)
        runs = Case(id=case, suite=str(suite.file), mismatches=mismatches)
        yield SkippedCase(id=case, suite=str(suite.file), why=why) if why else runs


def _kind(result: Mapping[str, Any], files: _Lazy) -> str:
    """Return the kind of the policy: from a flag such as `isValidatingPolicy`, else from the policy itself."""
    flags = [key for key, value in result.items() if key.startswith("is") and value is True]
    if flags:
        return str(flags[0]).removeprefix("is")
    name = result["policy"].rpartition("/")[2]
    try:
        kinds = (str(one.get("kind")) for one in files().policies if _name(one) == name and not _is_binding(one))
        return next(kinds, _OWN)
    except InputError:  # of policies at addresses in the net, for one
        return _OWN


def _is_binding(policy: JSON) -> bool:
    return str(policy.get("kind", "")).endswith("Binding")


def _resource_names_of_result(result: Mapping[str, Any], files: _Lazy) -> Sequence[str]:
    """Return the names of the resources: those of the result, or all of its kind, or `*` if there are none."""
    if result.get("resources"):
        return [str(name) for name in result["resources"]]
    try:
        return [_name(one) for one in files().resources if _is(one, result.get("kind"))] or ["*"]
    except InputError:
        return ["*"]


def _files(test: Mapping[str, Any], suite: Suite) -> _Files:
    values = _objects_named_in_test(test, "variables", suite)
    user = next((one.get("userInfo") or {} for one in _objects_named_in_test(test, "userinfo", suite)), {})
    return _Files(
        suite=suite,
        policies=_objects_named_in_test(test, "policies", suite),
        resources=_objects_named_in_test(test, "resources", suite),
        context=(
            *_objects_named_in_test(test, "paramResources", suite),
            *_objects_named_in_test(test, "clusterResources", suite),
        ),
        labels={
            one["name"]: one.get("labels") or {} for value in values for one in value.get("namespaceSelector") or ()
        },
        user=UserInfo(username=user.get("username") or "", groups=tuple(user.get("groups") or ())),
    )


def _objects_named_in_test(test: Mapping[str, Any], key: str, suite: Suite) -> tuple[JSON, ...]:
    names = test.get(key) or ()
    return suite.objects([names] if isinstance(names, str) else names)


def _is(resource: JSON, kind: str | None) -> bool:
    return isinstance(resource, dict) and kind in (None, resource.get("kind"))


def _name(resource: JSON) -> str:
    return str(get(resource, ("metadata", "name"), ""))


def _find(resources: Sequence[JSON], kind: str | None, name: str) -> JSON:
    """Return the resource of a kind by `name` or `namespace/name`."""
    namespace, _, plain = name.rpartition("/")
    for one in resources:
        if _is(one, kind) and _name(one) == plain and namespace in ("", get(one, ("metadata", "namespace"), "")):
            return one
    raise InputError(Problem(message=f"no {kind or 'resource'} named `{name}` in the files of the test"))


def _mismatches(result: Mapping[str, Any], name: str, lazy: _Lazy, how: Options) -> tuple[str, ...]:
    files = lazy()
    resource = _find(files.resources, result.get("kind"), name)
    operation = str(result.get("operation") or "CREATE").upper()
    try:
        attributes = attributes_of_object(resource, how.table.row, operation=Operation(operation))
    except (CallError, ValueError) as error:
        raise InputError(Problem(message=str(error))) from None
    value = {
        "id": name,
        "upstream": "kyverno/",
        "policies": [one for one in _policy_with_bindings(files.policies, result["policy"]) if one["kind"] in _NATIVE],
        "bindings": [
            one for one in _policy_with_bindings(files.policies, result["policy"]) if one["kind"] not in _NATIVE
        ],
        "params": files.context,
        "namespaces": list(_namespaces(files, attributes.namespace)),
        "review": review_of_attributes(replace(attributes, user_info=files.user)),
        "expect": _expect(result, name, files),
    }
    return cases.mismatches(cases.RecordedCase(value), how)


def _policy_with_bindings(policies: Sequence[JSON], name: str) -> Iterator[JSON]:
    """Yield the policy and its bindings; if the files have none, a binding that applies everywhere."""
    native = [one for one in policies if str(one.get("apiVersion", "")).startswith(f"{_GROUP}/")]
    yield from (one for one in native if one.get("kind") in _NATIVE and _name(one) == name)
    bindings = [one for one in native if get(one, ("spec", "policyName")) == name]
    yield from bindings
    for one in () if bindings else native:
        if one.get("kind") in _NATIVE and _name(one) == name:
            actions = {"validationActions": ["Deny"]} if one["kind"] == "ValidatingAdmissionPolicy" else {}
            yield {
                "apiVersion": one["apiVersion"],
                "kind": f"{one['kind']}Binding",
                "metadata": {"name": f"{name}-default"},
                "spec": {"policyName": name, **actions},
            }


def _namespaces(files: _Files, used: str) -> Iterator[JSON]:
    """Yield the namespaces of the resources, of the values file, and of the request."""
    yield from (one for one in files.resources if _is(one, "Namespace"))
    for name in dict.fromkeys((*files.labels, used)):
        labels = {NAME_LABEL: name, **files.labels.get(name, {})}
        yield {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}


def _expect(result: Mapping[str, Any], name: str, files: _Files) -> JSON:
    """Return the expectation: `fail` is a denial, `pass` and `skip` are not; a passing mutation returns the patched
    resource.
    """
    expect: dict[str, Any] = {"allowed": result["result"] != "fail"}
    patched = result.get("patchedResources")
    if patched and result["result"] == "pass":
        expect["patchedObject"] = _find(files.suite.objects([patched]), result.get("kind"), name)
    return expect
