"""Converts policies of all known projects, and tries the results as `claimgate policies check` does."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from webhook.apimachinery.attributes import JSON
from webhook.apimachinery.object_lists import objects_of_list
from webhook.apimachinery.paths import get, path_as_text
from webhook.conversion import cluster_policy, gatekeeper, kubewarden, kyverno
from webhook.errors import InputProblem, NotConverted, PolicyError
from webhook.manifests.foreign_kinds import project_of_policy
from webhook.policy.expressions import UNDECLARED
from webhook.policy.load import Options, load_documents
from webhook.policy.policy_set import PolicySet
from webhook.yamltext.yamlfile import Document

_KYVERNOS: Final = frozenset(
    (
        "exceptions",
        "generator",
        "globalContext",
        "gzip",
        "hash",
        "http",
        "image",
        "imageData",
        "images",
        "isImage",
        "json",
        "jsonpatch",
        "listObjToMap",
        "md5",
        "parseImageReference",
        "parseServiceAccount",
        "random",
        "regex",
        "resource",
        "sha1",
        "sha256",
        "time",
        "user",
        "verifyImageSignatures",
        "x509",
        "yaml",
    )
)
"""Kyverno's own functions and variables (github.com/kyverno/sdk extensions/cel/libs)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConvertedPolicy:
    """A policy in its native form.

    Attributes:
        manifests: policies and bindings.
        policies: the compiled policies.
        rules: for each native policy the name of the converted rule, if the kind has rules.
        notes: differences that a native policy cannot express.
    """

    manifests: tuple[JSON, ...]
    policies: PolicySet
    rules: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversion:
    """The native form of all policies of some documents.

    Attributes:
        manifests: policies and bindings.
        problems: the policies without a native form, with their places.
        notes: differences between a policy and its native form.
        policy_count: the number of policies that were read.
    """

    manifests: tuple[JSON, ...]
    problems: tuple[InputProblem, ...]
    notes: tuple[InputProblem, ...]
    policy_count: int


def convert_documents(documents: Iterable[Document], options: Options) -> Conversion:
    """Convert every policy of the known projects. Other objects are left out."""
    objects = [
        (document, path, value)
        for document in documents
        for path, value in objects_of_list(document.value)
        if project_of_policy(value)
    ]
    templates = {gatekeeper.kind_of_constraints(each): each for _, _, each in objects if gatekeeper.is_template(each)}
    used = {str(each["kind"]) for _, _, each in objects if gatekeeper.is_constraint(each)}
    manifests: list[JSON] = []
    problems: list[InputProblem] = []
    notes: list[InputProblem] = []
    for document, path, value in objects:
        named = f"{value['kind']} `{get(value, ('metadata', 'name'), '')}`"
        try:
            converted = _convert_object(value, templates, used, options)
        except NotConverted as error:
            problems.append(document.problem((*path, *error.path), f"{named} is not converted: {error.why}"))
            continue
        without_failing, left_out = kyverno.without_failing_variants(converted.manifests)
        manifests += without_failing
        notes += [document.problem(path, f"{named}: {text}") for text in (*converted.notes, *left_out)]
    return Conversion(
        manifests=tuple(manifests), problems=tuple(problems), notes=tuple(notes), policy_count=len(objects)
    )


def _convert_object(
    value: JSON, templates: Mapping[str, JSON], used: frozenset[str] | set[str], options: Options
) -> ConvertedPolicy:
    """Convert one object. A constraint is converted with its template.

    Raises:
        NotConverted: the object has no exact native form.
    """
    if is_convertible(value):
        return convert_policy(value, options)
    if gatekeeper.is_constraint(value):
        template = templates.get(str(value["kind"]))
        if template is None:
            raise NotConverted((), "its ConstraintTemplate is in none of the files")
        stored = gatekeeper.with_defaults_of_template(value, template)
        manifests = gatekeeper.policy_and_binding(template, stored, options.table)
        return ConvertedPolicy(manifests=manifests, policies=compile_converted(manifests, options))
    if gatekeeper.is_template(value):
        if engines := gatekeeper.non_cel_engines(value):
            raise NotConverted(("spec", "targets"), f"it is in {engines}, not in CEL (engine {gatekeeper.ENGINE})")
        if gatekeeper.kind_of_constraints(value) not in used:
            raise NotConverted((), "none of the files has a constraint of this template")
        return ConvertedPolicy(manifests=(), policies=PolicySet(validating=(), mutating=(), table=options.table))
    raise NotConverted((), _why_not_in_cel(value))


def _why_not_in_cel(value: JSON) -> str:
    kind = str(value["kind"])
    if kind in kubewarden.KINDS:
        return "its module is not `cel-policy`"
    if kind in cluster_policy.KINDS:
        return "none of its rules has `validate.cel`"
    return "policies of this kind have no native form"


def reason_as_text(error: NotConverted) -> str:
    """Return the reason, after the path of the part if known."""
    return f"{path_as_text(error.path)}: {error.why}" if error.path else error.why


def is_convertible(policy: JSON) -> bool:
    """Return whether a policy belongs to Kyverno or Kubewarden and is in CEL."""
    tests = (kyverno.is_kyverno_policy, cluster_policy.is_cel_policy, kubewarden.is_cel_policy)
    return any(is_of_kind(policy) for is_of_kind in tests)


def convert_policy(policy: JSON, options: Options) -> ConvertedPolicy:
    """Convert a policy of Kyverno or Kubewarden, and compile the result.

    Raises:
        NotConverted: the policy has no exact native form, or its native form does not compile.
    """
    if cluster_policy.is_cel_policy(policy):
        rules = list(cluster_policy.rules_of_policy(policy, options.table))
        manifests = tuple(each for _, pair in rules for each in pair)
        return ConvertedPolicy(
            manifests=manifests,
            policies=compile_converted(manifests, options),
            rules={pair[0]["metadata"]["name"]: name for name, pair in rules},
        )
    if kubewarden.is_cel_policy(policy):
        manifests = kubewarden.policy_and_binding(policy)
        return ConvertedPolicy(manifests=manifests, policies=compile_converted(manifests, options))
    manifests = kyverno.convert_kyverno_policy(policy)
    return ConvertedPolicy(
        manifests=manifests, policies=compile_converted(manifests, options), notes=kyverno.notes_on_policy(policy)
    )


def compile_converted(manifests: Sequence[JSON], options: Options) -> PolicySet:
    """Compile converted policies.

    Raises:
        NotConverted: an API server would refuse one of the policies.
    """
    try:
        return load_documents(map(Document, manifests), options)
    except PolicyError as error:
        raise NotConverted((), _reason_of_refusal(error.problems)) from None


def _reason_of_refusal(problems: Sequence[InputProblem]) -> str:
    """Return the names of Kyverno's functions in the policy; without any, the first problem."""
    undeclared = dict.fromkeys(name for each in problems for name in UNDECLARED.findall(each.message))
    names = [name for name in undeclared if name in _KYVERNOS]
    if names:
        return f"uses {' and '.join(f'`{name}`' for name in names)}, which only Kyverno has"
    first = problems[0]
    return f"an API server refuses it: {': '.join(part for part in (first.path, first.message) if part)}"
