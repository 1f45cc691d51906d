"""Answers a question of the page: the verdict on each object, as from `claimgate replay`, and its explanation.

Runs in a child process (worker.py), which bounds time and memory. Reads only the question and the loaded policies.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final, TypeAlias

from msgspec.structs import replace

from webhook.admission import fixtures
from webhook.admission.kind_names import kind_mistake
from webhook.admission.phases import LocalAnswerer, run_phases
from webhook.apimachinery.attributes import JSON
from webhook.apimachinery.paths import get
from webhook.cel import compiled_engine
from webhook.cluster.file_tree import FileTree
from webhook.errors import CallError, ClaimgateError, InputError, InputProblem
from webhook.evaluation.review_options import ReviewOptions
from webhook.input import documents, shipped
from webhook.manifests.foreign_kinds import describe_foreign_policies
from webhook.manifests.models import GROUP, MODELS, VALIDATING
from webhook.playground.exchange import Question, describe_queues, input_errors_as_json, review_of_object_as_json
from webhook.playground.measured_engine import MeasuredEngine
from webhook.policy import unbound
from webhook.policy.compiled import Policy
from webhook.policy.load import Options, PolicyDocuments, load_documents, read_policy_documents
from webhook.policy.policy_set import PolicySet
from webhook.rules import pages
from webhook.settings.shared import Settings
from webhook.text.wording import counted
from webhook.yamltext import yamlfile

_OBJECT_KEYS: Final = ("apiVersion", "kind")
_WORDS_OF_DENIAL: Final = ("Error from server", "denied the request", " is invalid:", " is forbidden:")
_POLICY: Final = "- Policy `"
"""The beginning of each line, on the page of a rule, that names a policy with the rule."""
_MOST_RULES: Final = 20
_NO_RULE: Final = (
    "the denial names no shipped rule: a policy of the site, another webhook, a quota or the API server denied"
)


def rules_of_denial(text: str, name: str) -> list[dict[str, Any]]:
    """Return at most 20 shipped rules that a denial names; [] for another text.

    Args:
        text: a possible denial: an answer with `status: Failure` or `allowed: false`, or a text without an object.
        name: the name of the text in an error.

    Returns:
        For each rule: `rule`, the id; `title`; `page`, the rest of its page in Markdown; `lines` of the denial that
        name the rule; `example`, an object that breaks the rule, or ""; `policies`, each with `name` and the `text` of
        its folder.

    Raises:
        InputError: a denial names no shipped rule.
    """
    is_object = _has_keys_of_object(text)
    message = (_message_of_answers(text) if is_object else text).strip()
    sections = pages.shipped_sections() if message else {}
    if names := pages.names_in_message(message, sections):
        shipped_documents = read_policy_documents([shipped.policies_folder()])
        lines = [(line.strip(), pages.names_in_message(line, sections)) for line in message.splitlines()]
        return [
            _rule_as_json(each, sections[each], [line for line, named in lines if each in named], shipped_documents)
            for each in names[:_MOST_RULES]
        ]
    if message and (is_object or any(words in message for words in _WORDS_OF_DENIAL)):
        raise InputError(InputProblem(message=_NO_RULE, file=name))
    return []


def pages_of_rules(names: Iterable[str]) -> dict[str, dict[str, str]]:
    """Return `title` and `page` (Markdown) for each shipped rule among the names."""
    unique_names = dict.fromkeys(names)
    sections = pages.shipped_sections() if unique_names else {}
    parts = {each: sections[each].split("\n\n", 2) for each in unique_names if each in sections}
    return {each: {"title": title, "page": page.strip()} for each, (_, title, page) in parts.items()}


def _has_keys_of_object(text: str) -> bool:
    if text.lstrip().startswith("{"):
        return True
    return any(line.lstrip(" \t-\"'").startswith(_OBJECT_KEYS) for line in text.splitlines())


def _message_of_answers(text: str) -> str:
    """Return the messages of denials by an API server or a webhook. Other objects have no messages of denials."""
    return "\n".join(map(_message_of_answer, (each.value for each in documents.documents_of_text(text, "").documents)))


def _message_of_answer(value: JSON) -> str:
    kind = get(value, ("kind",), None)
    if kind == "Status" and value.get("status") == "Failure":
        return str(get(value, ("message",), ""))
    if kind == "AdmissionReview" and get(value, ("response", "allowed"), None) is False:
        return str(get(value, ("response", "status", "message"), ""))
    return ""


def _rule_as_json(rule: str, section: str, lines: Sequence[str], shipped_documents: PolicyDocuments) -> dict[str, Any]:
    _, title, page = section.split("\n\n", 2)
    bad = page.partition("\nBad: ")[2]
    names = dict.fromkeys(line.split("`")[1] for line in page.splitlines() if line.startswith(_POLICY))
    return {
        "rule": rule,
        "title": title,
        "page": page.strip(),
        "lines": lines,
        "example": bad.partition("```yaml\n")[2].partition("```")[0],
        "policies": [{"name": each, "text": _text_of_folder(each, shipped_documents)} for each in names],
    }


def _text_of_folder(policy: str, shipped_documents: PolicyDocuments) -> str:
    """Return the files of a policy's folder as one text: the file of the policy first."""
    owner = next(each.file for each in shipped_documents.documents if _is_policy(each.value, policy))
    folder = Path(owner).parent
    files = dict.fromkeys(
        each.file
        for each in (*shipped_documents.documents, *shipped_documents.rules)
        if Path(each.file).parent == folder
    )
    ordered = (owner, *(each for each in files if each != owner))
    return "---\n".join(yamlfile.text(each) for each in ordered)


def _is_policy(value: JSON, name: str) -> bool:
    is_policy = str(get(value, ("kind",), "")).endswith("AdmissionPolicy")
    return is_policy and get(value, ("metadata", "name"), "") == name


OBJECT, CLUSTER = "object", "cluster"
"""The names of the two texts in messages."""
_MOST_OBJECTS: Final = 20


Check: TypeAlias = Callable[[PolicySet, Options], Sequence[dict[str, Any]]]
"""Returns the report of `claimgate policies check`: `policy` and `mistakes` of policies with mistakes."""


def answer_question(
    question: Question, default_policies: PolicySet, options: Options, engine: MeasuredEngine, check: Check
) -> dict[str, Any]:
    """Answer a question.

    Args:
        question: the texts.
        default_policies: the policies for a question without policies.
        options: how policies are compiled.
        engine: the engine of `default_policies`, which records evaluations.
        check: checks the policies of the question.

    Returns:
        `reviews`, one for each object; `pages` of shipped rules in findings; `checks` of policies with mistakes;
        `queues`; `notes`. For a pasted denial, `denial` has its rules. For an unreadable text, `errors` has text and
        line.
    """
    try:
        if rules := rules_of_denial(question.object, OBJECT):
            return {"denial": rules}
        return _answer_with_documents(question, default_policies, options, engine, check)
    except ClaimgateError as error:
        return {"errors": input_errors_as_json(error)}


def _answer_with_documents(
    question: Question, default_policies: PolicySet, options: Options, engine: MeasuredEngine, check: Check
) -> dict[str, Any]:
    objects, others = documents.documents_of_text(question.object, OBJECT), yamlfile.load(question.cluster, CLUSTER)
    if objects.problems:
        raise InputError(*objects.problems)
    if not objects.documents:
        raise InputError(InputProblem(message="no object: write one, or choose a sample", file=OBJECT))
    if len(objects.documents) > _MOST_OBJECTS:
        count = counted(len(objects.documents), "object")
        raise InputError(
            InputProblem(message=f"{count}: the page reviews at most {_MOST_OBJECTS} at a time", file=OBJECT)
        )
    declared = [each for each in others if _declares_rules(each.value)]
    others = tuple(each for each in others if not _declares_rules(each.value))
    cluster_documents = [
        each
        for each in documents.documents_of_text(question.cluster, CLUSTER).documents
        if not _declares_rules(each.value)
    ]
    policies, notes, checks = default_policies, list[str](), list[dict[str, Any]]()
    is_own = any(_is_policy_or_binding(each.value) for each in cluster_documents)
    if is_own:
        engine = MeasuredEngine(compiled_engine())
        policies = load_documents(others, replace(options, engine=engine, lazy=False), rules=declared)
        notes = [
            f"policy {each.name} has no binding; it is evaluated here as if a binding denied"
            for each in _policies_without_binding(policies)
        ]
        policies = unbound.with_default_bindings(policies)
        checks = list(check(policies, options))
    context = [(CLUSTER, each.value) for each in cluster_documents if not _is_policy_or_binding(each.value)]
    files = FileTree(
        ((OBJECT, obj) for obj in _objects_of_documents(objects)), context=context, is_whole=question.is_whole
    )
    submissions = fixtures.Submissions(files, options.table.row)
    reviews = [_review_one_object(each, submissions, policies, question, engine) for each in objects.documents]
    if foreign := describe_foreign_policies(each.value for each in cluster_documents):
        notes.append(foreign)
    notes += [*fixtures.notes_on_context(files, Settings(context_is_whole=question.is_whole))]
    notes += [mistake for each in objects.documents if (mistake := _mistake_in_kind(each, options))]
    return {
        "reviews": reviews,
        "pages": pages_of_rules(each["rule"] for review in reviews for each in review["findings"]),
        "queues": describe_queues(value for _, value in context),
        "notes": notes,
        "checks": checks,
        "ownPolicies": is_own,
    }


def input_of_case(question: Question) -> tuple[list[JSON], list[JSON], list[JSON]]:
    """Return the parts of a question for a suite: the objects, the policies with bindings, and the other objects.

    Raises:
        InputError: a text cannot be read, or there is no object or no policy.
    """
    objects = documents.documents_of_text(question.object, OBJECT)
    cluster_documents = documents.documents_of_text(question.cluster, CLUSTER)
    if problems := (*objects.problems, *cluster_documents.problems):
        raise InputError(*problems)
    policies = [each.value for each in cluster_documents.documents if _is_policy_or_binding(each.value)]
    if not objects.documents:
        raise InputError(InputProblem(message="no object: write one, or choose a sample", file=OBJECT))
    if not policies:
        message = "no policy: a case tests the policies of its suite, so write a policy here"
        raise InputError(InputProblem(message=message, file=CLUSTER))
    others = [each.value for each in cluster_documents.documents if not _is_policy_or_binding(each.value)]
    return [each.value for each in objects.documents], [*policies, *_missing_bindings(policies)], others


def _missing_bindings(policies: Sequence[JSON]) -> Iterator[JSON]:
    """Yield a binding that denies for each policy without a binding. Otherwise the policy would not be evaluated."""
    bound = {(each["kind"], get(each, ("spec", "policyName"), "")) for each in policies}
    for each in policies:
        kind, name = f"{each['kind']}Binding", get(each, ("metadata", "name"), "")
        if not each["kind"].endswith("Binding") and (kind, name) not in bound:
            actions = {"validationActions": ["Deny"]} if each["kind"] == VALIDATING else {}
            spec = {"policyName": name, **actions}
            yield {"apiVersion": each["apiVersion"], "kind": kind, "metadata": {"name": name}, "spec": spec}


def _policies_without_binding(policies: PolicySet) -> Iterator[Policy]:
    yield from (policy for policy in policies.policies if not policy.bindings)


def _declares_rules(value: JSON) -> bool:
    """Return whether a document is the rules.yaml of a policy's folder."""
    return isinstance(value, dict) and "kind" not in value and isinstance(value.get("policies"), dict)


def _is_policy_or_binding(value: JSON) -> bool:
    if not isinstance(value, dict) or value.get("kind") not in MODELS:
        return False
    return str(value.get("apiVersion", "")).startswith(f"{GROUP}/")


def _objects_of_documents(inputs: documents.InputDocuments) -> Iterator[JSON]:
    for each in inputs.documents:
        obj = get(each.value, fixtures.object_path(each.value))
        if isinstance(obj, dict):
            yield fixtures.object_in_request_namespace(obj, each.value)


def _mistake_in_kind(document: documents.InputDocument, options: Options) -> str:
    mistake = kind_mistake(get(document.value, fixtures.object_path(document.value)), options.table)
    return f"{mistake.field}: {mistake.text}" if mistake else ""


def _review_one_object(
    document: documents.InputDocument,
    submissions: fixtures.Submissions,
    policies: PolicySet,
    question: Question,
    engine: MeasuredEngine,
) -> dict[str, Any]:
    """Raises InputError if the document is not an object."""
    try:
        each = submissions.of(document)
    except CallError as error:
        at = document.place()
        raise InputError(InputProblem(message=error.message, file=at.file, line=at.line, column=at.column)) from None
    engine.evaluations.clear()
    answerer = LocalAnswerer(policies=policies, cluster=each.cluster, options=ReviewOptions(advice=True), explains=True)
    outcome = run_phases(each.attributes, question.phase, answerer)
    return review_of_object_as_json(document, each, outcome, policies, tuple(engine.evaluations))
