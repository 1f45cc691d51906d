"""`claimgate policies new` and `policies init`: write policies that a site edits, each with a binding and a suite.

`new` writes a policy that requires or sets a label, with or without a parameter. `init` copies a folder of
init_policies/. Its policy.yaml begins with a comment about the policy and the lines to edit. New files are written as
text, because users need the comments.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Final

import typer
from msgspec import Struct

from webhook import assembly
from webhook.apimachinery import names
from webhook.cluster.site_params import OWN_NAMESPACE
from webhook.commands import options
from webhook.errors import ConfigurationError
from webhook.settings.shared import Settings
from webhook.suites.files import Suite
from webhook.text import terminal
from webhook.text.similar_names import nearest_name
from webhook.yamltext import yamlfile
from webhook.yamltext.input_files import InputFile

_LABELS: Final = "object.metadata.?labels.orValue({})"


class NewPolicyOptions(Struct, frozen=True, kw_only=True):
    """The wanted policy. Its parameter is in the namespace where claimgate runs, which users cannot write to."""

    name: str
    expands: bool = False
    mutates: bool = False
    has_param: bool = False
    own_namespace: str = OWN_NAMESPACE

    @property
    def kind(self) -> str:
        """Return the kind of the new policy, such as ValidatingAdmissionPolicy."""
        return f"{'Mutating' if self.mutates else 'Validating'}AdmissionPolicy"


def files_of_new_policy(choice: NewPolicyOptions) -> Mapping[str, str]:
    """Return the text of every file of the new policy, by name."""
    written = {"policy.yaml": _text_of_policy(choice), "binding.yaml": _text_of_binding(choice)}
    if choice.has_param:
        written["params.yaml"] = _text_of_params(choice)
    return {name: f"{text}\n" for name, text in {**written, "suite.yaml": _text_of_suite(choice)}.items()}


def _text_of_policy(choice: NewPolicyOptions) -> str:
    comment = "Pods get the label team where they have none." if choice.mutates else "Every Pod has the label team."
    lines = [
        f"# An example. {comment} For another purpose, edit the description,",
        f"# matchConstraints and {'mutations' if choice.mutates else 'validations'} here, and the cases in suite.yaml.",
        "apiVersion: admissionregistration.k8s.io/v1",
        f"kind: {choice.kind}",
        "metadata:",
        f"  name: {choice.name}",
        "  annotations:",
        f"    kubernetes.io/description: {comment}",
    ]
    if choice.expands:
        lines += [
            "    # Also evaluate this policy on the pod templates of Jobs, TrainJobs, RayJobs and other workloads.",
            "    # `object` is then the template as a Pod, and `request` is the request of the workload.",
            "    claimgate.dev/expand: pods",
        ]
    lines += ["spec:", "  failurePolicy: Fail # if an expression cannot be evaluated, the request is denied"]
    if choice.has_param:
        lines.append("  paramKind: {apiVersion: v1, kind: ConfigMap} # `params` is the object that the binding names")
    lines += [
        "  matchConstraints:",
        "    resourceRules:",
        '    - {apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}',
        *(_lines_of_mutation(choice) if choice.mutates else _lines_of_validation(choice)),
    ]
    return "\n".join(lines)


def _label_expression(choice: NewPolicyOptions) -> str:
    return "params.data.label" if choice.has_param else "'team'"


def _lines_of_validation(choice: NewPolicyOptions) -> Iterator[str]:
    yield "  validations:"
    yield f'  - expression: "{_label_expression(choice)} in {_LABELS}"'
    if choice.has_param:
        message = "'metadata.labels: must have the label ' + params.data.label + ', which names who pays: add it'"
        yield f'    messageExpression: "{message}"'
    else:
        yield '    message: "metadata.labels: must have the label team, which names who pays: add it"'


def _lines_of_mutation(choice: NewPolicyOptions) -> Iterator[str]:
    label, value = ("params.data.label", "params.data.value") if choice.has_param else ('"team"', '"unassigned"')
    yield "  matchConditions:"
    yield "  - name: has-no-label # so that the change is made once, and a value that a user set stays"
    yield f'''    expression: "!({_label_expression(choice)} in {_LABELS})"'''
    yield "  reinvocationPolicy: IfNeeded # evaluate again if another policy has changed the object"
    yield "  mutations:"
    yield "  - patchType: ApplyConfiguration"
    yield "    applyConfiguration:"
    yield f"      expression: 'Object{{metadata: Object.metadata{{labels: {{{label}: {value}}}}}}}'"


def _text_of_binding(choice: NewPolicyOptions) -> str:
    lines = [
        "apiVersion: admissionregistration.k8s.io/v1",
        f"kind: {choice.kind}Binding",
        "metadata:",
        f"  name: {choice.name}",
        "spec:",
        f"  policyName: {choice.name}",
    ]
    if not choice.mutates:
        lines.append("  validationActions: [Deny] # begin with [Warn] to see what would be denied")
    if choice.has_param:
        reference = f"{{name: {choice.name}, namespace: {choice.own_namespace}, parameterNotFoundAction: Deny}}"
        lines.append(f"  paramRef: {reference}")
    return "\n".join(lines)


def _text_of_params(choice: NewPolicyOptions) -> str:
    metadata = f"{{name: {choice.name}, namespace: {choice.own_namespace}}}"
    lines = ["apiVersion: v1", "kind: ConfigMap", f"metadata: {metadata}", "data:"]
    lines += ["  label: team", *(["  value: unassigned"] if choice.mutates else [])]
    return "\n".join(lines)


_POD: Final = "{containers: [{name: main, image: example.com/main:1}]}"
_JOB: Final = "{restartPolicy: Never, containers: [{name: main, image: example.com/main:1}]}"


def _text_of_suite(choice: NewPolicyOptions) -> str:
    cases = [*(_lines_of_mutating_cases(choice) if choice.mutates else _lines_of_validating_cases(choice))]
    head = f"# `claimgate test {choice.name}` runs these cases against the policies of this folder."
    return "\n".join((head, "cases:", *cases))


def _lines_of_case(name: str, lines: list[str], expected: list[str]) -> list[str]:
    return [f"- name: {name}", "  input:", *(f"    {line}" for line in lines), "  expect:", *expected]


def _lines_of_pod(labels: str) -> list[str]:
    return ["apiVersion: v1", "kind: Pod", f"metadata: {{name: p{labels}}}", f"spec: {_POD}"]


def _lines_of_job(labels: str) -> list[str]:
    template = f"{{metadata: {{labels: {{{labels}}}}}, spec: {_JOB}}}"
    return ["apiVersion: batch/v1", "kind: Job", "metadata: {name: j}", f"spec: {{template: {template}}}"]


_OTHER: Final = ["apiVersion: v1", "kind: Service", "metadata: {name: s}", "spec: {ports: [{port: 80}]}"]


def _lines_of_validating_cases(choice: NewPolicyOptions) -> Iterator[str]:
    message = "metadata.labels: must have the label team, which names who pays: add it"
    denied = ["    allowed: false", f'    message: "{message}"']
    yield from _lines_of_case(
        "a Pod with the label is allowed", _lines_of_pod(", labels: {team: vision}"), ["    allowed: true"]
    )
    yield from _lines_of_case("a Pod without the label is denied", _lines_of_pod(""), denied)
    if choice.expands:
        denied = ["    allowed: false", f'    message: "spec.template.{message}"']
        yield from _lines_of_case("a Job without the label in its template is denied", _lines_of_job("app: a"), denied)
        yield from _lines_of_case(
            "a Job with the label in its template is allowed", _lines_of_job("team: a"), ["    allowed: true"]
        )
    yield from _lines_of_case("a Service is not matched", _OTHER, ["    allowed: true", "    matched: false"])
    if choice.has_param:
        yield from _lines_of_case_without_param_key(choice)


def _lines_of_case_without_param_key(choice: NewPolicyOptions) -> list[str]:
    """Return a case with a ConfigMap that lacks the key. The expression fails."""
    metadata = f"{{name: {choice.name}, namespace: {choice.own_namespace}}}"
    empty = f"{{apiVersion: v1, kind: ConfigMap, metadata: {metadata}, data: {{}}}}"
    expected = ["    allowed: false", '    errors: ["no such key: label"]']
    (name, *lines) = _lines_of_case("a ConfigMap without the key denies everything", _lines_of_pod(""), expected)
    return [name, f"  params: [{empty}]", *lines]


def _lines_of_mutating_cases(choice: NewPolicyOptions) -> Iterator[str]:
    added = "{op: add, path: /metadata/labels, value: {team: unassigned}}"
    yield from _lines_of_case(
        "a Pod without the label gets it", _lines_of_pod(""), ["    allowed: true", f"    patch: [{added}]"]
    )
    if choice.expands:
        added = "{op: add, path: /spec/template/metadata/labels/team, value: unassigned}"
        patched = ["    allowed: true", f"    patch: [{added}]"]
        yield from _lines_of_case("the template of a Job gets the label", _lines_of_job("app: a"), patched)
    unchanged = ["    allowed: true", "    patch: []"]
    yield from _lines_of_case("a Pod with the label keeps it", _lines_of_pod(", labels: {team: vision}"), unchanged)
    yield from _lines_of_case("a Service is not matched", _OTHER, ["    allowed: true", "    matched: false"])


@options.add_settings_flags(Settings, "workloads", "kubernetes_version", "own_namespace")
def command(
    name: Annotated[
        str, typer.Argument(metavar="NAME", show_default=False, help="The name of the policy and of its folder.")
    ],
    *,
    expand: Annotated[
        bool, typer.Option("--expand", help="Also evaluate the policy on pod templates of workloads.")
    ] = False,
    mutate: Annotated[bool, typer.Option("--mutate", help="Write a policy that changes objects.")] = False,
    param: Annotated[bool, typer.Option("--param", help="Write a policy that reads a ConfigMap.")] = False,
    case: Annotated[
        list[Path] | None,
        typer.Option(
            "--case",
            metavar="FILE",
            show_default=False,
            help="Add a case to the suite for each object or AdmissionReview of this file; repeatable. The folder may "
            "exist already, with or without a suite.",
        ),
    ] = None,
    parent: Annotated[Path, typer.Option("--in", metavar="DIR", help="Create the folder in this directory.")] = Path(),
    settings: Settings,
) -> int:
    """Write a folder with a new policy, its binding and a suite that passes.

    NAME does not choose what the policy does. The policy is an example that requires the label `team` on Pods, or
    sets the label with --mutate. Edit the policy and its cases. `claimgate policies init` writes policies for other
    purposes.

    With --case, each new case expects the current answer of the policies in the folder. Check these answers.
    """
    wrong = names.dns1123_subdomain_errors(name)
    if wrong:
        path = parent / name
        hint = f"\nhint: NAME is not a path: write `--in {path.parent} {path.name}`" if "/" in name.rstrip("/") else ""
        raise ConfigurationError(f"`{name}` cannot be the name of a policy: {wrong[0]}{hint}")
    folder = parent / name
    if folder.exists() and case:
        if expand or mutate or param:
            raise ConfigurationError(
                f"{folder}: exists, and --case adds to it: leave out --expand, --mutate and --param"
            )
        sys.stdout.write(terminal.lines(_add_cases(folder, case, settings)))
        return 0
    if os.path.lexists(folder):
        raise ConfigurationError(
            f"{folder}: exists already, and was not changed: choose another name, remove the folder, or use --case"
        )
    namespace = settings.own_namespace
    choice = NewPolicyOptions(name=name, expands=expand, mutates=mutate, has_param=param, own_namespace=namespace)
    written = files_of_new_policy(choice)
    write_new_folder(folder, written)
    lines = [*(f"wrote {folder / each}" for each in written), *_add_cases(folder, case or (), settings)]
    example = "sets" if mutate else "requires"
    lines.append(f"next: edit the example in {folder / 'policy.yaml'}, which {example} the label team on Pods")
    lines += [f"      claimgate policies check {folder}", f"      claimgate test {folder}"]
    if name in names_of_policies():
        lines.append(
            f"hint: `claimgate policies init {name}` writes another policy of this name: {description_of_policy(name)}"
        )
    sys.stdout.write(terminal.lines(lines))
    return 0


def _add_cases(folder: Path, files: Sequence[Path], settings: Settings) -> Sequence[str]:
    """Add a case for each object of the files, and return a line for each case. A folder without a suite gets a
    suite.
    """
    from webhook.suites.drafted_cases import suite_with_drafted_cases, text_of_new_suite

    if not files:
        return ()
    path = folder / "suite.yaml"
    objects = assembly.objects_of_files([InputFile(str(each)) for each in files])
    options = assembly.create_compile_options(settings)
    if not path.is_symlink() and not path.exists():
        text, names = text_of_new_suite(folder, objects, {}, options)
    else:
        before = yamlfile.text(InputFile(str(path), str(folder)))
        text, names = suite_with_drafted_cases(Suite(file=path, root=folder), before, objects, options)
    path.write_text(text, encoding="utf-8")
    return [f"added to {path}: {each}" for each in names]


def write_new_folder(folder: Path, texts: Mapping[str, str]) -> None:
    """Write a new folder. The folder appears when all files are complete."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    unfinished = Path(tempfile.mkdtemp(prefix=".claimgate-", dir=folder.parent))
    try:
        for name, text in texts.items():
            (unfinished / name).write_text(text, encoding="utf-8")
        unfinished.chmod(0o755)
        unfinished.rename(folder)
    except BaseException:
        shutil.rmtree(unfinished, ignore_errors=True)
        raise


FOLDER: Final = Path(__file__).with_name("init_policies")
_FILES: Final = ("policy.yaml", "binding.yaml", "suite.yaml")


def names_of_policies() -> tuple[str, ...]:
    """Return the names of the policies that can be written."""
    return tuple(sorted(each.name for each in FOLDER.iterdir() if each.is_dir()))


def description_of_policy(name: str) -> str:
    """Return the description of a policy in one sentence."""
    (document,) = yamlfile.read(FOLDER / name / "policy.yaml")
    return str(document.value["metadata"]["annotations"]["kubernetes.io/description"])


def init(
    name: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="NAME",
            show_default=False,
            help="The name of a policy; --list prints all names.",
            autocompletion=names_of_policies,
        ),
    ] = None,
    *,
    is_list: Annotated[bool, typer.Option("--list", help="List the policies with their purpose.")] = False,
    parent: Annotated[Path, typer.Option("--in", metavar="DIR", help="Create the folders in this directory.")] = Path(
        "policies"
    ),
) -> int:
    """Write policies that most sites want, each into a folder with its binding and a suite that passes.

    The comment at the top of policy.yaml says what the policy does and what to edit. Edit suite.yaml as well.
    """
    names_of_all = names_of_policies()
    if is_list and name:
        raise ConfigurationError("--list lists all policies: use it without names")
    if is_list:
        width = max(map(len, names_of_all))
        sys.stdout.write(terminal.lines(f"{each:{width}}  {description_of_policy(each)}" for each in names_of_all))
        return 0
    if not name:
        raise ConfigurationError(f"expected the name of a policy: {', '.join(names_of_all)}")
    for each in name:
        if each not in names_of_all:
            near = nearest_name(each, names_of_all)
            hint = f", did you mean `{near}`?" if near else f": expected one of {', '.join(names_of_all)}"
            raise ConfigurationError(f"policy `{each}` does not exist{hint}")
    chosen = tuple(dict.fromkeys(name))
    for each in chosen:
        if os.path.lexists(parent / each):
            raise ConfigurationError(
                f"{parent / each}: exists already, and was not changed: remove the folder, or choose another --in"
            )
    for each in chosen:
        write_new_folder(parent / each, _files_of_policy(each))
    lines = [f"wrote {parent / each}: {description_of_policy(each)}" for each in chosen]
    lines += [f"next: edit policy.yaml of each folder, as its comment says; then run claimgate policies check {parent}"]
    sys.stdout.write(terminal.lines([*lines, f"      claimgate test {parent}"]))
    return 0


def _files_of_policy(name: str) -> Mapping[str, str]:
    return {file: (FOLDER / name / file).read_text(encoding="utf-8") for file in _FILES}
