"""The pages of shipped rules: those of findings, and those that a denial in place of an object names.

A user has the text of kubectl, or the answer of an API server or of a webhook as JSON, and asks what it means.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final

from webhook.apimachinery.attributes import JSON
from webhook.apimachinery.paths import get
from webhook.errors import InputError, InputProblem
from webhook.input import documents, shipped
from webhook.policy.load import PolicyDocuments, read_policy_documents
from webhook.rules import pages
from webhook.yamltext import yamlfile

_OBJECT_KEYS: Final = ("apiVersion", "kind")
_WORDS_OF_DENIAL: Final = ("Error from server", "denied the request", " is invalid:", " is forbidden:")
_POLICY: Final = "- Policy `"
"""How a line of a page begins that names a policy with the rule."""
_MOST_RULES: Final = 20
_NO_RULE: Final = (
    "the denial names no shipped rule: a policy of the site, another webhook, a quota or the API server denied"
)


def rules_of_denial(text: str, name: str) -> list[dict[str, Any]]:
    """Return the shipped rules that a denial names, and [] for a text that is no denial.

    Args:
        text: what may be a denial: an answer with `status: Failure` or `allowed: false`, or a text without an object.
        name: the name of the text in an error.

    Returns:
        at most 20 rules, each with `rule`; `title`; `page`, the rest of its page in Markdown; `lines` of the denial
        that name it; `example`, an object that breaks it, or ""; and `policies`, each with its `name` and the `text` of
        its folder.

    Raises:
        InputError: it is a denial, and names no shipped rule.
    """
    is_object = _has_keys_of_object(text)
    message = (_message_of_answers(text) if is_object else text).strip()
    sections = pages.shipped_sections() if message else {}
    if names := pages.names_in_message(message, sections):
        read = read_policy_documents([shipped.policies_folder()])
        lines = [(line.strip(), pages.names_in_message(line, sections)) for line in message.splitlines()]
        return [
            _rule_as_json(each, sections[each], [line for line, named in lines if each in named], read)
            for each in names[:_MOST_RULES]
        ]
    if message and (is_object or any(words in message for words in _WORDS_OF_DENIAL)):
        raise InputError(InputProblem(message=_NO_RULE, file=name))
    return []


def pages_of_rules(names: Iterable[str]) -> dict[str, dict[str, str]]:
    """Return the `title` and the `page`, in Markdown, of each name that is a shipped rule."""
    wanted = dict.fromkeys(names)
    sections = pages.shipped_sections() if wanted else {}
    parts = {each: sections[each].split("\n\n", 2) for each in wanted if each in sections}
    return {each: {"title": title, "page": page.strip()} for each, (_, title, page) in parts.items()}


def _has_keys_of_object(text: str) -> bool:
    if text.lstrip().startswith("{"):
        return True
    return any(line.lstrip(" \t-\"'").startswith(_OBJECT_KEYS) for line in text.splitlines())


def _message_of_answers(text: str) -> str:
    """Return the messages of denials of an API server or a webhook, and "" for other objects."""
    return "\n".join(map(_message_of_answer, (each.value for each in documents.documents_of_text(text, "").documents)))


def _message_of_answer(value: JSON) -> str:
    kind = get(value, ("kind",), None)
    if kind == "Status" and value.get("status") == "Failure":
        return str(get(value, ("message",), ""))
    if kind == "AdmissionReview" and get(value, ("response", "allowed"), None) is False:
        return str(get(value, ("response", "status", "message"), ""))
    return ""


def _rule_as_json(rule: str, section: str, lines: Sequence[str], read: PolicyDocuments) -> dict[str, Any]:
    _, title, page = section.split("\n\n", 2)
    bad = page.partition("\nBad: ")[2]
    names = dict.fromkeys(line.split("`")[1] for line in page.splitlines() if line.startswith(_POLICY))
    return {
        "rule": rule,
        "title": title,
        "page": page.strip(),
        "lines": lines,
        "example": bad.partition("```yaml\n")[2].partition("```")[0],
        "policies": [{"name": each, "text": _text_of_folder(each, read)} for each in names],
    }


def _text_of_folder(policy: str, read: PolicyDocuments) -> str:
    """Return the policies of the folder with a policy, then their bindings, parameters and declared rules."""
    owner = next(each.file for each in read.documents if _is_policy(each.value, policy))
    folder = Path(owner).parent
    files = dict.fromkeys(each.file for each in (*read.documents, *read.rules) if Path(each.file).parent == folder)
    ordered = (owner, *(each for each in files if each != owner))
    return "---\n".join(yamlfile.text(each) for each in ordered)


def _is_policy(value: JSON, name: str) -> bool:
    is_policy = str(get(value, ("kind",), "")).endswith("AdmissionPolicy")
    return is_policy and get(value, ("metadata", "name"), "") == name
