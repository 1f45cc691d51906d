"""Declares the fields of `claimgate.yaml`, and reads the file. Mistakes are reported with their places.

The module does not know which rules exist: policy/configured_rules.py checks the names.
"""

from __future__ import annotations

import datetime as dt
import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar, Final, Literal, TypeAlias

from msgspec import Struct
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator
from pydantic.alias_generators import to_camel

from webhook.apimachinery import releases
from webhook.apimachinery.paths import FieldPath
from webhook.errors import InputError, InputProblem, UnreadPartError
from webhook.manifests.models import LabelSelector
from webhook.rules.actions import OFF_IN_QUOTES, Level
from webhook.text.model_errors import describe_mistake_of_model
from webhook.yamltext import yamlfile
from webhook.yamltext.input_files import AnyFile, as_input_file
from webhook.yamltext.unread import refuse_unread_part

Severity: TypeAlias = Literal["critical", "high", "medium", "low", "info"]
FailOn: TypeAlias = Literal["deny", "warn", "never", "undecided"]


def _check_release(text: str) -> str:
    if releases.parse_release(text) is None:
        raise ValueError("is not a release: write a release such as `0.18`, in quotes")
    return text


Release: TypeAlias = Annotated[str, AfterValidator(_check_release)]
Rule: TypeAlias = Annotated[
    str, Field(min_length=1, description="The id of a rule, such as pod-resources/whole-number.")
]


class CamelCaseModel(BaseModel):
    """Fields in camel case, as in Kubernetes; unknown fields are refused.

    Values with only defaults are made by `model_construct`, for which pydantic builds no validator: most commands have
    no configuration file, and start a little faster.
    """

    model_config = ConfigDict(
        extra="forbid", frozen=True, strict=True, alias_generator=to_camel, populate_by_name=True, defer_build=True
    )


class RuleLevels(CamelCaseModel):
    """The levels of groups and rules, which replace the levels of rules, bindings and params. The level of a rule takes
    precedence over the level of its group.
    """

    groups: dict[str, Level] = Field(default={}, description="Names of groups of rules, with a level each.")
    rules: dict[str, Level] = Field(default={}, description="Ids of rules, with a level each.")


class ReleaseSettings(CamelCaseModel):
    """The releases of controllers in the cluster, used if no object of the cluster states them."""

    kueue: Release | None = Field(default=None, description="The release of Kueue, such as 0.18.")
    trainer: Release | None = Field(default=None, description="The release of Kubeflow Trainer, such as 2.4.")


class IgnoredObjects(CamelCaseModel):
    """Objects on which no policy is evaluated."""

    namespaces: tuple[str, ...] = Field(default=(), description="Names of namespaces; `*` stands for any characters.")
    namespace_selector: LabelSelector | None = Field(default=None, description="Labels of namespaces.")
    object_selector: LabelSelector | None = Field(default=None, description="Labels of objects.")


class TimeLimit(CamelCaseModel):
    """The owner of an exception or exemption, the reason, and the last day."""

    word: ClassVar[str]
    """The word for an object of this class in messages."""
    owner: str = Field(min_length=1, description="The owner: a team or an address.")
    reason: str = Field(min_length=1, description="The reason.")
    expires: dt.date = Field(description="The last day with an effect, in UTC.")

    @property
    def subjects(self) -> tuple[str, ...]:
        """Return the names of the rules of an exception, or of the users of an exemption."""
        raise NotImplementedError

    @property
    def effect_of_end(self) -> str:
        """Return a clause that says what happens after the last day."""
        raise NotImplementedError

    def days_left(self, day: dt.date) -> int:
        """Return the number of days until the last day; negative after the last day."""
        return (self.expires - day).days


class ExceptionRecord(TimeLimit):
    """Rules that may be broken."""

    word: ClassVar[str] = "exception"
    rules: tuple[Rule, ...] = Field(min_length=1, description="Ids of rules that may be broken.")

    @property
    def subjects(self) -> tuple[str, ...]:
        return self.rules

    @property
    def effect_of_end(self) -> str:
        return f"{', '.join(self.rules)} {'applies' if len(self.rules) == 1 else 'apply'} again"

    @property
    def description(self) -> str:
        """Return a text such as `excepted until 2027-01-31 by the ml team: the reason`."""
        return f"excepted until {self.expires} by {self.owner}: {self.reason}"


class RuleException(ExceptionRecord):
    """Objects that may break rules. A field that is not set matches all objects."""

    kinds: tuple[str, ...] = Field(
        default=(),
        description="Kinds of objects, such as PyTorchJob. If several groups have a kind of this name, add the group: "
        "Job.batch or Job.batch.volcano.sh, and Service.core for the core group.",
    )
    namespaces: tuple[str, ...] = Field(
        default=(), description="Namespaces of the objects; `*` stands for any characters."
    )
    names: tuple[str, ...] = Field(default=(), description="Names of the objects; `*` stands for any characters.")


class AllowedExceptions(CamelCaseModel):
    """The rules for which some namespaces may have PolicyExceptions, and for how long."""

    namespaces: tuple[str, ...] = Field(
        default=(), description="Namespaces of the objects; `*` stands for any characters. If absent: all namespaces."
    )
    rules: tuple[Rule, ...] = Field(
        min_length=1, description="Ids of rules and names of groups of rules; `*` alone stands for all rules."
    )
    max_days: int = Field(
        ge=1, le=3650, description="The maximum number of days from the creation of a PolicyException to its last day."
    )


_EVERYBODY: Final = frozenset(
    ("system:authenticated", "system:unauthenticated", "system:serviceaccounts", "system:serviceaccounts:kube-system")
)
_CONTROLLERS: Final = frozenset(
    (
        "system:kube-controller-manager",
        *(
            f"system:serviceaccount:kube-system:{name}-controller"
            for name in ("cronjob", "daemon-set", "deployment", "job", "replicaset", "replication", "statefulset")
        ),
    )
)
"""Users that create Pods for all users: kube-controller-manager v1.36, with and without separate credentials for each
controller.
"""
_LONGEST_USER: Final = 256


def _check_exempt_name(name: str) -> str:
    if not name or len(name) > _LONGEST_USER or not name.isprintable():
        raise ValueError(f"is not a name of 1 to {_LONGEST_USER} printable characters")
    if name in _EVERYBODY | _CONTROLLERS:
        raise ValueError(
            f"`{name}` creates the Pods of all users, so no policy would have an effect: name another user"
        )
    return name


UserOrGroup: TypeAlias = Annotated[str, AfterValidator(_check_exempt_name)]


class Exemption(TimeLimit):
    """Users and groups; API servers do not call claimgate for their requests."""

    word: ClassVar[str] = "exemption"
    users: tuple[UserOrGroup, ...] = Field(
        default=(), max_length=50, description="Names of users, as `kubectl auth whoami` prints them."
    )
    groups: tuple[UserOrGroup, ...] = Field(default=(), max_length=10, description="Groups of users.")

    @model_validator(mode="after")
    def _require_user_or_group(self) -> Exemption:
        if not (self.users or self.groups):
            raise ValueError("has no user and no group: write users or groups")
        return self

    @property
    def subjects(self) -> tuple[str, ...]:
        return (*self.users, *self.groups)

    @property
    def effect_of_end(self) -> str:
        return f"requests of {', '.join(self.subjects)} are reviewed again"


class ReportSettings(CamelCaseModel):
    """The findings that reports show, and the findings for which a verb exits with 1."""

    fail_on: FailOn | tuple[FailOn, ...] = Field(
        default="warn",
        description="`deny`: exit with 1 if a finding denies. `warn`: also if a finding warns. "
        "`never`: never exit with 1. `undecided`: exit with 3 if a rule that may deny was not evaluated; with "
        "`warn` also if another rule was not evaluated.",
    )
    min_severity: Severity | None = Field(default=None, description="The lowest severity that is reported.")
    skip: tuple[Rule, ...] = Field(default=(), description="Ids of rules that are not reported.")
    baseline: str = Field(default="", description="A file of known findings, which are not reported.")


class FileConfiguration(CamelCaseModel):
    """The configuration file. Paths are relative to the file."""

    shipped: bool = Field(default=True, description="Whether the shipped policies are evaluated.", examples=[False])
    policies: tuple[str, ...] = Field(
        default=(), description="Folders and files of additional policies.", examples=[["policies/site"]]
    )
    context: tuple[str, ...] = Field(
        default=(), description="Folders and files with objects of the cluster.", examples=[["cluster"]]
    )
    context_is_whole: bool = Field(
        default=False, description="Whether `context` has all objects of the cluster.", examples=[True]
    )
    workloads: tuple[str, ...] = Field(
        default=(), description="Files with rows of the workload table.", examples=[["workloads.yaml"]]
    )
    kubernetes_version: Release | None = Field(
        default=None, description="The release of the API server.", examples=["1.35"]
    )
    levels: RuleLevels = Field(
        default=RuleLevels.model_construct(),
        description="The levels of groups and rules.",
        examples=[{"groups": {"kueue-advice": "advice"}, "rules": {"pod-resources/limit-required": "warn"}}],
    )
    params: dict[str, dict[str, str]] = Field(
        default={},
        description="For each ConfigMap with parameters, by its name: keys that replace keys of its data.",
        examples=[{"gpu-portable": {"resource": "amd.com/gpu"}}],
    )
    releases: ReleaseSettings = Field(
        default=ReleaseSettings.model_construct(),
        description="Releases of controllers in the cluster.",
        examples=[{"kueue": "0.18", "trainer": "2.4"}],
    )
    ignore: IgnoredObjects = Field(
        default=IgnoredObjects.model_construct(),
        description="Objects on which no policy is evaluated.",
        examples=[{"namespaces": ["ci-*"], "objectSelector": {"matchLabels": {"team": "platform"}}}],
    )
    exceptions: tuple[RuleException, ...] = Field(
        default=(),
        description="Objects that may break rules.",
        examples=[
            [
                {
                    "rules": ["pod-resources/whole-number"],
                    "kinds": ["PyTorchJob", "Job.batch"],
                    "namespaces": ["research-*"],
                    "owner": "ml-platform@example.com",
                    "reason": "the old device plugin accepts fractions until the nodes are replaced",
                    "expires": "2027-03-31",
                }
            ]
        ],
    )
    exemptions: tuple[Exemption, ...] = Field(
        default=(),
        max_length=16,
        description="Users and groups; API servers do not call claimgate for their requests.",
        examples=[
            [
                {
                    "users": ["system:serviceaccount:argocd:argocd-application-controller"],
                    "groups": ["break-glass"],
                    "owner": "ml-platform@example.com",
                    "reason": "the platform team repairs the cluster",
                    "expires": "2027-03-31",
                }
            ]
        ],
    )
    ignore_annotations: tuple[str, ...] = Field(
        default=(),
        description="Namespaces in which the annotation claimgate.dev/ignore of an object makes an exception; `*` "
        "stands for any characters.",
        examples=[["sandbox-*"]],
    )
    ignore_comments: tuple[str, ...] = Field(
        default=(),
        description="Namespaces for which a comment `# claimgate:ignore RULE reason` in an audited file makes an "
        "exception; `*` stands for any characters.",
        examples=[["sandbox-*"]],
    )
    policy_exceptions: tuple[AllowedExceptions, ...] = Field(
        default=(),
        max_length=100,
        description="The exceptions that owners of namespaces may make with PolicyExceptions. Without this field, "
        "PolicyExceptions have no effect.",
        examples=[[{"namespaces": ["research-*"], "rules": ["pod-resources/whole-number"], "maxDays": 30}]],
    )
    report: ReportSettings = Field(
        default=ReportSettings.model_construct(),
        description="The findings that audit and replay report.",
        examples=[{"failOn": "deny", "minSeverity": "medium", "baseline": "known-findings.json"}],
    )

    @property
    def time_limits(self) -> Iterator[tuple[FieldPath, TimeLimit]]:
        """Yield the exceptions and exemptions with their paths."""
        yield from ((("exceptions", number), each) for number, each in enumerate(self.exceptions))
        yield from ((("exemptions", number), each) for number, each in enumerate(self.exemptions))


EMPTY = FileConfiguration.model_construct()


def lowering_settings(value: FileConfiguration) -> tuple[str, ...]:
    """Return the names of settings that can remove findings without a trace in the output."""
    levels = (*value.levels.groups.values(), *value.levels.rules.values())
    used = {
        "levels": any(level != "deny" for level in levels),
        "params": bool(value.params),
        "shipped": not value.shipped,
        "failOn": value.report.fail_on != EMPTY.report.fail_on,
    }
    return tuple(name for name, is_used in used.items() if is_used)


def configuration_template() -> str:
    """Return a file that explains each field, with an example as a comment. The file sets no field."""
    sections = ["# claimgate.yaml: the configuration of the server and of all verbs. To set a field, remove its #."]
    for each in FileConfiguration.model_fields.values():
        example = yamlfile.dump({each.alias: (each.examples or [each.default])[0]})
        sections.append("\n".join((f"# {each.description}", *(f"#{line}" for line in example.splitlines()))))
    return "\n\n".join(sections) + "\n"


def configuration_schema() -> dict[str, Any]:
    """Return the JSON schema (draft 2020-12) of the file."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "claimgate.yaml",
        **{key: value for key, value in FileConfiguration.model_json_schema().items() if key != "title"},
    }


NAME: Final = "claimgate.yaml"


class ConfigurationFile(Struct, frozen=True):
    """A configuration and its document. Without a file, the document is None.

    `root` is the folder that must contain all files that the configuration names. If a user named the configuration,
    `root` is "", and any file is allowed.
    """

    value: FileConfiguration = EMPTY
    document: yamlfile.Document | None = None
    root: str = ""

    @property
    def path(self) -> Path | None:
        return Path(self.document.file) if self.document else None

    def resolve_relative_path(self, name: str) -> Path:
        """Return a path that the configuration names, relative to the configuration.

        Raises:
            InputError: the path is outside of `root`.
        """
        path = (self.path.parent if self.path else Path()) / name
        if self.root and not Path(os.path.realpath(path)).is_relative_to(os.path.realpath(self.root)):
            message = f"`{name}` is outside of the working directory, so it is not read; name the file with --config"
            raise InputError(InputProblem(message=message, file=str(self.path)))
        return path

    def problem(self, path: FieldPath, message: str) -> InputProblem:
        return self.document.problem(path, message) if self.document else InputProblem(message=message)


NO_FILE: Final = ConfigurationFile()


def read_configuration(file: AnyFile) -> ConfigurationFile:
    """Read the configuration of a file.

    Raises:
        InputError: the file cannot be read, or has mistakes. All mistakes are reported.
    """
    return configuration_of_documents(yamlfile.read(file), str(file), as_input_file(file).root)


def configuration_of_documents(documents: Sequence[yamlfile.Document], file: str, root: str = "") -> ConfigurationFile:
    """Return the configuration from the documents of a file. ConfigurationFile explains `root`.

    Raises:
        InputError: the file has mistakes. The error lists all mistakes.
    """
    documents = documents or (yamlfile.Document({}, file),)  # a file with only comments sets nothing
    if len(documents) != 1 or not isinstance(documents[0].value, dict):
        found_instead = f"{len(documents)} documents" if len(documents) != 1 else "another value"
        message = f"expected one document with a map of fields, found {found_instead}"
        raise InputError(InputProblem(message=message, file=file))
    (document,) = documents
    try:
        value = FileConfiguration.model_validate_json(json.dumps(document.value, default=refuse_unread_part))
    except UnreadPartError as error:
        raise InputError(document.problem((), str(error))) from None
    except ValidationError as error:
        raise InputError(*_problems_of_error(document, error)) from None
    return ConfigurationFile(value, document, root)


def _problems_of_error(document: yamlfile.Document, error: ValidationError) -> Iterator[InputProblem]:
    for mistake in error.errors():
        path = tuple(mistake["loc"])
        hint = f": {OFF_IN_QUOTES}" if path[:1] == ("levels",) and mistake["input"] is False else ""
        yield document.problem(path, f"{describe_mistake_of_model(FileConfiguration, mistake)}{hint}")
