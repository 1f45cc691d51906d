"""Reads prepared answers for the variable `authorizer` of policies, from suites and from files of `--authorizer`.

    authorizer:
    - {user: alice, verb: use, group: ray.io, resource: rayclusters, allowed: true}
    - {path: /healthz, allowed: false, reason: no rule allows it}

Each question gets the first answer with matching fields. An absent field matches any value.
"""

from __future__ import annotations

from typing import Any, Final

from pydantic import Field, ValidationError, model_validator

from webhook.cel.library.authorizer import ListedAuthorizer
from webhook.errors import InputError, InputProblem
from webhook.manifests.configuration import CamelCaseModel
from webhook.text.model_errors import describe_mistake_of_model
from webhook.yamltext import yamlfile
from webhook.yamltext.input_files import AnyFile

_ANY: Final = "If absent, any value matches."


class AuthorizerAnswer(CamelCaseModel):
    """An answer: the fields that a question must have, and the decision."""

    user: str | None = Field(default=None, description=f"The user that sends the request, or a service account. {_ANY}")
    verb: str | None = Field(default=None, description=f"The verb of `check`. {_ANY}")
    path: str | None = Field(default=None, description=f"A path of the API server. {_ANY}")
    group: str | None = Field(default=None, description=f"The API group of a resource. {_ANY}")
    resource: str | None = Field(default=None, description=f"The plural of a kind. {_ANY}")
    subresource: str | None = Field(default=None, description=f"The subresource, such as `status`. {_ANY}")
    namespace: str | None = Field(default=None, description=f"The namespace of the resource. {_ANY}")
    name: str | None = Field(default=None, description=f"The name of the resource. {_ANY}")
    field_selector: str | None = Field(default=None, description=f"The selector of fields as a text. {_ANY}")
    label_selector: str | None = Field(default=None, description=f"The selector of labels as a text. {_ANY}")
    allowed: bool | None = Field(default=None, description="The decision; required unless `error` is set.")
    reason: str = Field(default="", description="The reason that the API server gives.")
    error: str | None = Field(default=None, description="The error of the check. Then `allowed` is false.")

    @model_validator(mode="after")
    def _require_decision(self) -> AuthorizerAnswer:
        if self.allowed is None and self.error is None:
            raise ValueError("needs `allowed: true`, `allowed: false`, or an `error`")
        return self

    @property
    def entry(self) -> dict[str, Any]:
        """Return the answer in the form of ListedAuthorizer."""
        return self.model_dump(by_alias=True, exclude_unset=True, exclude_none=True)


class AuthorizerFile(CamelCaseModel):
    """The content of a file of `--authorizer`."""

    authorizer: list[AuthorizerAnswer] = Field(
        description="The answers. The first answer that matches a question is used."
    )


def read_authorizer_file(file: AnyFile) -> ListedAuthorizer:
    """Return the authorizer with the answers of a file. A question without an answer is an error.

    Raises:
        InputError: the file cannot be read, or has mistakes. All mistakes are reported.
    """
    documents = yamlfile.read(file)
    if len(documents) != 1:
        message = f"expected one document with the list `authorizer`, found {len(documents)}"
        raise InputError(InputProblem(message=message, file=str(file)))
    (document,) = documents
    try:
        answers = AuthorizerFile.model_validate(document.value, by_alias=True, by_name=False).authorizer
    except ValidationError as error:
        problems = ((tuple(each["loc"]), describe_mistake_of_model(AuthorizerFile, each)) for each in error.errors())
        raise InputError(*(document.problem(path, text) for path, text in problems)) from None
    return ListedAuthorizer([each.entry for each in answers])
