"""A question of the page: texts and choices, checked before anything reads them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

from webhook.deadline import Deadline
from webhook.errors import CallError
from webhook.yamltext.jsontext import decode_any_json

MOST_BYTES: Final = 4 << 20
"""For one question: an object of an API server has at most 3 MiB (apiserver limits), and policies are small."""
PhaseChoice: TypeAlias = Literal["auto", "mutate", "validate"]
_PHASES: Final[tuple[PhaseChoice, ...]] = ("auto", "mutate", "validate")
_TEXTS: Final = ("object", "cluster")


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """Two texts in YAML or JSON, and their roles.

    Args:
        object: objects, requests or AdmissionReviews to be reviewed.
        cluster: policies with their bindings, their params, and other objects of the cluster. Without a policy in it,
            the policies of the command line are evaluated, or the shipped policies.
        phase: the phase to run.
        is_whole: objects that `cluster` does not have do not exist.
    """

    object: str = ""
    cluster: str = ""
    phase: PhaseChoice = "auto"
    is_whole: bool = False


def read_question(body: bytes) -> Question:
    """Return the question of a request's body.

    Raises:
        CallError: 400 if it is not a question.
    """
    try:
        value = decode_any_json(body, Deadline())
    except ValueError:
        raise _bad_question_error("the body is not JSON") from None
    if not isinstance(value, dict):
        raise _bad_question_error("the body must be an object")
    return question_of_mapping(value)


def question_of_mapping(value: Mapping[str, Any]) -> Question:
    """Return the question in a mapping, such as a sample or a shared file.

    Raises:
        CallError: 400 if a field has another type.
    """
    texts = {name: value.get(name) or "" for name in _TEXTS}
    wrong = [name for name, text in texts.items() if not isinstance(text, str)]
    if wrong:
        raise _bad_question_error(f"`{wrong[0]}` must be a string")
    phase = next((each for each in _PHASES if each == (value.get("phase") or "auto")), None)
    is_whole = value.get("isWhole") or False
    if phase is None:
        raise _bad_question_error(f"`phase` must be one of {', '.join(_PHASES)}")
    if not isinstance(is_whole, bool):
        raise _bad_question_error("`isWhole` must be true or false")
    return Question(**texts, phase=phase, is_whole=is_whole)


def _bad_question_error(text: str) -> CallError:
    return CallError(400, "BadRequest", text)
