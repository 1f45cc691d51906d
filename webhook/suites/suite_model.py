"""Defines the fields of `suite.yaml`, with types and descriptions, from which the JSON schema is generated."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from webhook.admission.phases import PhaseName
from webhook.manifests.authorizer_answers import AuthorizerAnswer
from webhook.manifests.configuration import CamelCaseModel


class ExpectModel(CamelCaseModel):
    """The expected parts of an answer. Absent fields are not compared.

    The texts of a list may be in any order.
    """

    allowed: bool = Field(description="Whether the request is allowed.")
    code: int | None = Field(default=None, description="The HTTP code of the denial.")
    reason: str | None = Field(default=None, description="The reason of the denial, such as Invalid.")
    message: str | None = Field(default=None, description="A part of the denial's text.")
    warnings: list[str] | None = Field(default=None, description="All warnings. A part of each text is enough.")
    audited: list[str] | None = Field(
        default=None,
        description="All failures under a binding with `Audit`. A part of each text is enough.",
    )
    audit_annotations: dict[str, str] | None = Field(
        default=None,
        description="All auditAnnotations of policies, by their key, or by `policy/key`.",
    )
    unknown: list[str] | None = Field(
        default=None, description="All messages about rules that were not evaluated. A part of each text is enough."
    )
    errors: list[str] | None = Field(
        default=None, description="All errors of expressions. A part of each text is enough."
    )
    matched: bool | None = Field(default=None, description="Whether any policy matches the request.")
    patched: Any = Field(default=None, description="A part of the resulting object.")
    patch: list[Any] | None = Field(default=None, description="The exact operations of the patch.")
    advice: list[str] | None = Field(default=None, description="All advice. A part of each text is enough.")


class CaseModel(CamelCaseModel):
    """A case: the request, the objects of the cluster, and the expectation.

    `rule` has the ids of the rules of the example. A bad example expects a denial, a warning or advice; other cases are
    good examples. A DELETE has only the deleted object, in `input` or `oldInput`.
    """

    name: str = Field(min_length=1, description="A unique name, as a sentence.")
    rule: str | list[str] = Field(default=[], description="Ids of the rules that the case is an example of.")
    input: Any = Field(default=None, description="An object, a request, an AdmissionReview, or the name of a file.")
    old_input: Any = Field(default=None, description="The object before an update, or the object that is deleted.")
    operation: Literal["CREATE", "UPDATE", "DELETE", "CONNECT"] = Field(
        default="CREATE", description="The operation of the request."
    )
    phase: PhaseName = Field(default="auto", description="auto mutates, then validates the result.")
    defaults: bool | None = Field(
        default=None,
        description="Whether to add the defaults of Kubernetes. If not set, they are added to objects, not to reviews.",
    )
    context: list[Any] = Field(default=[], description="Objects of the cluster, or names of files and folders.")
    context_is_whole: bool = Field(default=False, description="Whether objects that are not in `context` do not exist.")
    params: list[Any] = Field(default=[], description="The params of policies, or names of files and folders.")
    authorizer: list[AuthorizerAnswer] = Field(
        default=[], description="The answers that policies get from `authorizer`."
    )
    expect: ExpectModel = Field(description="The expected answer.")

    @property
    def is_bad_example(self) -> bool:
        """Return whether the case expects a denial, a warning or advice."""
        return not self.expect.allowed or bool(self.expect.warnings or self.expect.advice)

    @property
    def subject(self) -> Any:
        """Return the object that the request is about, as written."""
        return self.old_input if self.input is None and self.operation == "DELETE" else self.input

    @property
    def rules(self) -> list[str]:
        """Return the rules that the case is an example of."""
        return [self.rule] if isinstance(self.rule, str) else self.rule


class SuiteModel(CamelCaseModel):
    """The content of a suite file. Each case is read separately, so a mistake in a case does not affect other cases."""

    cases: list[Any] = Field(min_length=1, description="The cases.")


class _WholeSuiteModel(SuiteModel):
    cases: list[CaseModel] = Field(min_length=1, description="The cases.")


def suite_schema() -> dict[str, Any]:
    """Return the JSON schema (draft 2020-12) of the file."""
    described = _WholeSuiteModel.model_json_schema()
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "suite.yaml",
        "description": "The cases of the policies beside it, which `claimgate test` runs.",
        **{key: value for key, value in described.items() if key not in ("title", "description")},
    }
