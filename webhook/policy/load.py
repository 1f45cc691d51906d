"""Loads a policy set from folders, files, mounted ConfigMaps or stdin, with Lists and several documents.

All mistakes are reported together, each with file, line and column. If there is a mistake, nothing is loaded. In a
folder, these are skipped: the folders `cases` and `context` with test inputs, suites of tests, kustomizations, and
claimgate.yaml. Objects of a policy's paramKind in the same files are its parameters. Policies of claimgate.dev are
converted to the equivalent native policies.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, TypeAlias

from msgspec import Struct, field, structs

from webhook.apimachinery import releases
from webhook.apimachinery.attributes import CRD, JSON
from webhook.apimachinery.object_lists import objects_of_list
from webhook.apimachinery.paths import FieldPath, get
from webhook.apimachinery.releases import Release
from webhook.cel import Engine
from webhook.cel.library.go_text import quote_as_go
from webhook.cluster.site_params import CONFIG_MAP, OWN_NAMESPACE
from webhook.errors import InputError, InputProblem, PolicyError
from webhook.facts.subject import SHIPPED, FactRegistry
from webhook.manifests.claimgate_kinds import is_claimgate_kind, parse_claimgate_kind, path_in_claimgate_object
from webhook.manifests.configuration import NAME as CONFIGURATION
from webhook.manifests.field_errors import FieldError, join_errors
from webhook.manifests.foreign_kinds import describe_foreign_policies
from webhook.manifests.models import (
    GROUP,
    MODELS,
    MUTATING,
    MUTATING_BINDING,
    VALIDATING,
    VALIDATING_BINDING,
    VERSIONS,
    Manifest,
    MutatingPolicyManifest,
    ShapeError,
    ValidatingPolicyManifest,
    parse_manifest,
)
from webhook.manifests.policy_exceptions import is_policy_exception
from webhook.policy.compile import compile_binding, compile_policy
from webhook.policy.compiled import Binding, Policy
from webhook.policy.param_rules import ParamRuleChecker
from webhook.policy.policy_set import PolicySet
from webhook.policy.rules_without_effect import errors_of_kinds_named_as_resources
from webhook.rules import policy_rules
from webhook.rules.decisions import Decision
from webhook.rules.rule import Rule
from webhook.workloads.table import Table
from webhook.yamltext import yamlfile

EngineName: TypeAlias = Literal["compiled", "celpy"]
TEST_FOLDERS = frozenset(("cases", "context"))
TEST_FILES = frozenset(("suite.yaml", "suite.yml", "kyverno-test.yaml", "kyverno-test.yml"))
_KUSTOMIZATIONS = frozenset(("kustomization.yaml", "kustomization.yml"))
"""Names of kustomizations, which `kubectl apply -k` reads. A kustomization may lack apiVersion and kind."""
_OTHER_KINDS = frozenset(("ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"))


class Options(Struct, frozen=True, kw_only=True):
    """Options for loading policies: the CEL engine, the Kubernetes version for CEL, and the workload table.

    `registry` has the facts and checks that policies may use.

    `lazy`: expressions are compiled when a policy is first evaluated. Use this only for policies that are known to
    compile. `own_namespace` is the namespace where claimgate runs; policies in files name it `claimgate-system`.
    """

    engine: Engine | EngineName = "compiled"
    version: Release = releases.DEFAULT
    table: Table
    lazy: bool = False
    registry: FactRegistry = SHIPPED
    own_namespace: str = OWN_NAMESPACE


class PolicyDocuments(Struct, frozen=True, kw_only=True):
    """The documents of files and folders with policies. The value can be sent to another process.

    Attributes:
        places: the files and folders.
        documents: policies, bindings and parameters.
        rules: the documents of rules.yaml.
        problems: the problems of documents that could not be read.
    """

    places: tuple[str, ...]
    documents: tuple[yamlfile.Document, ...]
    rules: tuple[yamlfile.Document, ...]
    problems: tuple[InputProblem, ...]


def load_policy_set(places: Sequence[Path | str], options: Options, root: str = "") -> PolicySet:
    """Read, verify and compile the policies of files and folders; `-` is standard input.

    Args:
        places: files and folders.
        options: how policies are compiled.
        root: the folder that must contain the targets of links. With "", each named folder must contain the targets of
            its links.

    Raises:
        PolicyError: the files have problems. The error lists all problems. A folder without a policy is a problem,
            because everything would be admitted.
    """
    return compile_policy_documents(read_policy_documents(places, root), options)


def read_policy_documents(places: Sequence[Path | str], root: str = "") -> PolicyDocuments:
    """Read the documents of files and folders; `-` is standard input. The arguments are those of `load_policy_set`.

    Raises:
        PolicyError: a file or folder does not exist or cannot be listed.
    """
    documents: list[yamlfile.Document] = []
    rules: list[yamlfile.Document] = []
    problems: list[InputProblem] = []
    try:
        files = yamlfile.required_files(places, root)
    except InputError as error:
        raise PolicyError(error.problems) from None
    roots = [Path(place) for place in places]
    for file in files:
        if _is_no_policy_file(file.path, roots):
            continue
        try:
            (rules if file.path.name == policy_rules.FILE else documents).extend(yamlfile.read(file))
        except InputError as error:
            problems.extend(error.problems)
    return PolicyDocuments(
        places=tuple(map(str, places)), documents=tuple(documents), rules=tuple(rules), problems=tuple(problems)
    )


def compile_policy_documents(read: PolicyDocuments, options: Options) -> PolicySet:
    """Verify and compile the policies of documents.

    Raises:
        PolicyError: as `load_policy_set`.
    """
    problems = (*read.problems, *errors_of_kinds_named_as_resources(read.documents, options.table))
    documents = [_in_own_namespace(each, options.own_namespace) for each in read.documents]
    policy_set = load_documents(documents, options, problems, rules=read.rules)
    if not policy_set.policies:
        places = ", ".join(read.places) or "nothing"
        if policy_set.foreign:
            raise PolicyError((InputProblem(message=f"no native policy found; {policy_set.foreign}", file=places),))
        raise PolicyError(
            (InputProblem(message=f"no policy found; expected a {VALIDATING} or a {MUTATING}", file=places),)
        )
    return policy_set


def _in_own_namespace(document: yamlfile.Document, own_namespace: str) -> yamlfile.Document:
    """Return a document in which `claimgate-system` is replaced by the namespace where claimgate runs."""
    if own_namespace == OWN_NAMESPACE:
        return document
    return replace(document, value=object_in_own_namespace(document.value, own_namespace))


def object_in_own_namespace(obj: JSON, own_namespace: str) -> JSON:
    """Return an object. In a binding or ConfigMap, `claimgate-system` is replaced by the namespace where claimgate
    runs.
    """
    if not isinstance(obj, dict):
        return obj
    if isinstance(obj.get("items"), list):
        return {**obj, "items": [object_in_own_namespace(each, own_namespace) for each in obj["items"]]}
    if obj.get("kind") == CONFIG_MAP.kind and get(obj, ("metadata", "namespace")) == OWN_NAMESPACE:
        return {**obj, "metadata": {**obj["metadata"], "namespace": own_namespace}}
    if get(obj, ("spec", "paramRef", "namespace")) == OWN_NAMESPACE:
        reference = {**obj["spec"]["paramRef"], "namespace": own_namespace}
        return {**obj, "spec": {**obj["spec"], "paramRef": reference}}
    return obj


def _is_no_policy_file(file: Path, roots: Iterable[Path]) -> bool:
    if file in roots:
        return False
    inside = next(file.relative_to(root) for root in roots if file.is_relative_to(root))
    return file.name in TEST_FILES | _KUSTOMIZATIONS | {CONFIGURATION} or not TEST_FOLDERS.isdisjoint(inside.parts[:-1])


def load_documents(
    documents: Iterable[yamlfile.Document],
    options: Options,
    problems: Iterable[InputProblem] = (),
    *,
    rules: Iterable[yamlfile.Document] = (),
) -> PolicySet:
    """Compile the policies of documents that are already read. `rules` declare the ids of validations (rules.yaml).

    Raises:
        PolicyError: there are problems. The error lists all problems, including `problems`.
    """
    loading = _PolicyLoader(options, chosen_engine(options.engine), problems=list(problems))
    loading.unread.update("" for _ in loading.problems)
    for document in documents:
        for path, value in objects_of_list(document.value):
            loading.add_object(_ObjectSource(document, path), value)
    for document in rules:
        loading.add_rules_of_document(document)
    return loading.build_policy_set()


def chosen_engine(chosen: Engine | EngineName) -> Engine:
    """Return the engine with this name, or the given engine."""
    if chosen == "compiled":
        from webhook.cel import compiled_engine

        return compiled_engine()
    if chosen == "celpy":
        from webhook.cel import celpy_engine

        return celpy_engine()
    return chosen


def refusal_of_manifest(value: JSON, options: Options) -> str:
    """Return the error of API servers for a policy or binding; "" if they accept it."""
    manifest = parse_manifest(value)
    kind, name = manifest.kind, manifest.metadata.name
    errors: Sequence[FieldError]
    if isinstance(manifest, ValidatingPolicyManifest | MutatingPolicyManifest):
        _, errors = compile_policy(manifest, chosen_engine(options.engine), options.version)
    else:
        _, errors = compile_binding(manifest)
    return f"{kind}.{GROUP} {quote_as_go(name)} is invalid: {join_errors(errors)}" if errors else ""


class _ObjectSource(Struct, frozen=True):
    """The place of an object: a document and the path in the document."""

    document: yamlfile.Document
    path: FieldPath

    def problem(self, path: FieldPath, text: str) -> InputProblem:
        return self.document.problem((*self.path, *path), text)

    def file_and_line(self) -> str:
        line, _ = self.document.position(self.path)
        return f"{self.document.file}:{line}"


class _PolicyLoader(Struct):
    """The objects and problems that were read so far."""

    options: Options
    engine: Engine
    policies: dict[tuple[str, str], tuple[_ObjectSource, Policy]] = field(default_factory=dict)
    bindings: dict[tuple[str, str], tuple[_ObjectSource, Binding]] = field(default_factory=dict)
    others: list[tuple[_ObjectSource, JSON]] = field(default_factory=list)
    problems: list[InputProblem] = field(default_factory=list)
    unread: set[str] = field(default_factory=set)
    """Names of policies that could not be read; "" for a policy with an unreadable name."""
    rules: dict[str, tuple[Rule, ...]] = field(default_factory=dict)
    """The rules of policies, in the order of their validations."""

    def add_object(self, source: _ObjectSource, value: JSON) -> None:
        """Store one object: a policy, a binding, or a possible parameter."""
        kind, version = (value.get("kind"), value.get("apiVersion")) if isinstance(value, dict) else (None, None)
        if not isinstance(kind, str) or not isinstance(version, str):
            text = "not a Kubernetes object: expected apiVersion and kind; keep other files out of the policy folder"
            self._add_problems_of_unread_object(value, source.problem((), text))
            return
        group, _, number = version.rpartition("/")
        if is_claimgate_kind(value):
            self._compile(source, value)
        elif group != GROUP or kind in _OTHER_KINDS:
            self.others.append((source, value))
        elif kind not in MODELS:
            self._add_problems_of_unread_object(
                value, source.problem(("kind",), f"unknown kind `{kind}`; expected {', '.join(MODELS)}")
            )
        elif number not in VERSIONS:
            text = f"unknown version `{version}`; expected {GROUP}/{{{','.join(VERSIONS)}}}"
            self._add_problems_of_unread_object(value, source.problem(("apiVersion",), text))
        else:
            self._compile(source, value)

    def _compile(self, source: _ObjectSource, value: JSON) -> None:
        try:
            manifest = parse_claimgate_kind(value) if is_claimgate_kind(value) else parse_manifest(value)
            compiled, errors = self._compile_manifest(manifest, source.document.file)
        except ShapeError as error:
            self._add_problems_of_unread_object(value, *(source.problem(path, text) for path, text in error.problems))
            return
        self._store_unless_duplicate(
            self.policies if isinstance(compiled, Policy) else self.bindings, manifest.kind, source, compiled
        )
        written = path_in_claimgate_object if is_claimgate_kind(value) else tuple
        self.problems += [
            _problem_with_hints(source, structs.replace(error, path=written(error.path))) for error in errors
        ]

    def _add_problems_of_unread_object(self, value: JSON, *problems: InputProblem) -> None:
        self.problems += problems
        name = get(value, ("metadata", "name"), "")
        self.unread.add(name if isinstance(name, str) else "")

    def _compile_manifest(self, manifest: Manifest, file: str) -> tuple[Policy | Binding, Sequence[FieldError]]:
        if not isinstance(manifest, ValidatingPolicyManifest | MutatingPolicyManifest):
            return compile_binding(manifest, file)
        chosen = self.options
        return compile_policy(
            manifest, self.engine, chosen.version, file, registry=chosen.registry, is_lazy=chosen.lazy
        )

    def _store_unless_duplicate(
        self,
        stored: dict[tuple[str, str], tuple[_ObjectSource, Any]],
        kind: str,
        source: _ObjectSource,
        compiled: Policy | Binding,
    ) -> None:
        key = (kind, compiled.name)
        if compiled.name and key in stored:
            text = (
                f"Duplicate value: {quote_as_go(compiled.name)}: first at {stored[key][0].file_and_line()}; rename one"
            )
            self.problems.append(source.problem(("metadata", "name"), text))
        else:
            stored[key] = (source, compiled)

    def add_rules_of_document(self, document: yamlfile.Document) -> None:
        """Store the rules that a document declares for the validations of policies."""
        try:
            declared = policy_rules.read_policy_rules(document)
        except InputError as error:
            self.problems += error.problems
            return
        for name, rules in declared.items():
            named = [policy for (_, each), (_, policy) in self.policies.items() if each == name]
            path, text = ("policies", name), ""
            if not named and name not in self.unread:
                text = f"no policy `{name}` is loaded: load it too, or correct the name"
            elif named and named[0].rule_count != len(rules):
                text = f"declares {len(rules)} rules for the {named[0].rule_count} validations of the policy"
            elif name in self.rules:
                text = f"the rules of policy `{name}` are declared twice: remove one declaration"
            if text:
                self.problems.append(_ObjectSource(document, ()).problem(path, text))
            self.rules[name] = rules

    def build_policy_set(self) -> PolicySet:
        """Return the policy set, with the bindings of each policy.

        Raises:
            PolicyError: there are problems.
        """
        self._report_bindings_without_policy()
        kinds = {(p.param_kind.group, p.param_kind.kind) for _, p in self.policies.values() if p.param_kind}
        validating = self._policies_with_bindings(VALIDATING, VALIDATING_BINDING)
        mutating = self._policies_with_bindings(MUTATING, MUTATING_BINDING)
        param_checker = ParamRuleChecker(
            (*validating, *mutating), self.options.registry, own_namespace=self.options.own_namespace
        )
        for source, other in self.others:
            self.problems += [
                source.problem(path, text) for path, text in param_checker.mistakes_if_object_is_param(other)
            ]
        if self.problems:
            raise PolicyError(tuple(self.problems))
        return PolicySet(
            validating=validating,
            mutating=mutating,
            params=tuple(other for _, other in self.others if _group_and_kind(other) in kinds),
            definitions=tuple(other for _, other in self.others if _group_and_kind(other) == (CRD.group, CRD.kind)),
            table=self.options.table,
            registry=self.options.registry,
            own_namespace=self.options.own_namespace,
            foreign=describe_foreign_policies(other for _, other in self.others if _group_and_kind(other) not in kinds),
            misplaced=next((source.file_and_line() for source, other in self.others if is_policy_exception(other)), ""),
        )

    def _report_bindings_without_policy(self) -> None:
        """Report bindings without a policy. A binding is not reported if a policy that could not be read may be its
        policy.
        """
        if "" in self.unread or any(not name for _, name in self.policies):
            return
        for (kind, _), (source, binding) in self.bindings.items():
            policy_kind = kind.removesuffix("Binding")
            if (
                binding.policy
                and binding.policy not in self.unread
                and (policy_kind, binding.policy) not in self.policies
            ):
                text = f"Not found: {quote_as_go(binding.policy)}: no {policy_kind} of this name is loaded"
                self.problems.append(
                    source.problem(("spec", "policyName"), f"{text}; load it too, or correct the name")
                )

    def _policies_with_bindings(self, kind: str, binding_kind: str) -> tuple[Policy, ...]:
        bound: dict[str, list[Binding]] = {}
        for (key, _), (_, binding) in sorted(self.bindings.items(), key=lambda item: item[0]):
            if key == binding_kind:
                bound.setdefault(binding.policy, []).append(binding)
        named = sorted((name, policy) for (key, name), (_, policy) in self.policies.items() if key == kind)
        return tuple(join_bindings(self._with_rules(policy), bound.get(name, ())) for name, policy in named)

    def _with_rules(self, policy: Policy) -> Policy:
        return replace(policy, named=self.rules.get(policy.name, ()))


def _problem_with_hints(source: _ObjectSource, error: FieldError) -> InputProblem:
    """Return a problem with the text of API servers, and hints below."""
    below = "\n".join(f"    hint: {line}" for line in error.note.splitlines())
    return structs.replace(source.problem(error.path, error.body), excerpt=below)


def join_bindings(policy: Policy, bindings: Iterable[Binding]) -> Policy:
    """Return a policy with its bindings. The decisions for validations that are true are created in advance."""
    return replace(
        policy,
        bindings=tuple(structs.replace(binding, admits=_admitting_decisions(policy, binding)) for binding in bindings),
    )


def _admitting_decisions(policy: Policy, binding: Binding) -> tuple[Decision, ...]:
    return tuple(
        Decision(
            policy=policy.name,
            rule=policy.rule_id(index),
            binding=binding.name,
            index=index,
            evaluation="admit",
            actions=binding.actions,
            severity=policy.severity,
            category=policy.category,
        )
        for index in range(policy.rule_count)
    )


def _group_and_kind(value: JSON) -> tuple[str, str]:
    return str(value["apiVersion"]).rpartition("/")[0], str(value["kind"])
