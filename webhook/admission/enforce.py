"""Turns decisions into a verdict: the denial and its text, the warnings, and the audit annotations.

An installation can limit the action of failures: deny, only warn, or only audit. So a platform team can first look at
what would be denied, then warn its users, then enforce. A long text is shortened after a whole sentence. A single
sentence is cut only if it is too long by itself.

Source: k8s.io/apiserver v0.36 pkg/admission/plugin/policy/validating/dispatcher.go for the actions of a binding, and
for the messages with `api_server_text`, which quote objects unchanged. Other messages escape the characters that a
terminal executes or hides, because kubectl prints a denial unchanged.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, Literal

from msgspec import Struct
from msgspec.structs import replace

from webhook.apimachinery import paths
from webhook.apimachinery.attributes import JSON, Attributes
from webhook.rules import text
from webhook.rules.decisions import (
    Decision,
    DenialCause,
    DenialDetails,
    DenialStatus,
    ValidationAction,
    Verdict,
    severity_rank,
)
from webhook.rules.problem import Problem
from webhook.settings.values import EnforcementAction
from webhook.text.terminal import one_line
from webhook.text.wording import counted

WITHHELD_KEYS: Final[Mapping[str, str]] = {"deny": "would-deny", "warn": "would-warn"}
"""The keys of the annotations that list the rules which would deny or warn without the limit of the installation."""
NOT_APPLIED: Final = "not-applied"
"""The end of the key of the annotation about a change that was not applied, after the name of the mutating policy."""
FAILURE_KEY = "validation.policy.admission.k8s.io/validation_failure"
APPLIED: Final = "applied"
"""The end of the key of the annotation that lists the changed fields, after the name of the mutating policy."""
MAX_WARNING = 256
"""The most characters of one warning if all warnings together exceed 4096 (k8s.io/apiserver v0.36
endpoints/filters/warning.go)."""
MAX_WARNINGS = 4096
"""The most characters of all warnings together."""
MAX_MESSAGE = 8192
"""The most characters of a denial: about a hundred lines, more than a person reads.

The longest message that Kubernetes allows for a validation, 5 KiB, fits. The API server and kubectl pass on any text; a
controller copies it into conditions, which accept 32,768 characters (metav1.Condition)."""
MAX_ANNOTATION = 10 * 1024
"""The most characters of one audit annotation with all its values. API servers cut a single value at this length
(maxAuditAnnotationValueLength, k8s.io/apiserver v0.36 pkg/admission/plugin/policy/validating/validator.go)."""
_QUIET: Final = frozenset((ValidationAction.ADVICE, ValidationAction.AUDIT))
_LONGEST_FIELD = 1024
"""The most characters of the path of a cause; a path that ends with a label's key is shorter."""
_MOST_PATHS = 3  # how many of the changed fields a warning names
_BAD_REQUEST = 400
_FROM_VALIDATING_PHASE = " ({count} of them from checks that run later)"
_SUFFIX = 512  # room for the name of the rule, of up to 253 characters, and for "; and 1000000 more"
_MORE = 32  # room for "and 1000000 more warnings"
_LINE_OF_SOURCE: Final = re.compile(r"\n(?= \| |ERROR: <input>:)")
"""Matches the line break before an error of an expression, or before a line of its source."""


def verdict_of_decisions(
    decisions: Sequence[Decision],
    attributes: Attributes,
    *,
    further: Sequence[Decision] = (),
    api_server_text: bool = False,
) -> Verdict:
    """Return the verdict of decisions.

    `further` are decisions that a denial also reports, without effect on the verdict.

    With `api_server_text`, code and reason are those of the first denial. Otherwise the text has all denials, and a
    denial with code 400, for an unreadable value, takes precedence.
    """
    # a list is faster here than any()
    if not [each for each in decisions if each.evaluation != "admit" or each.audit_annotations]:
        return Verdict(allowed=True, decisions=tuple(decisions), patched_object=attributes.object)
    failed = [decision for decision in decisions if decision.action == "deny"]
    denied = [each for each in failed if each.is_enforced]
    warned = _decisions_that_only_warn(failed)
    status = None
    if denied:
        status = (
            _denial_status_in_api_server_words(denied[0], attributes)
            if api_server_text
            else status_of_denials(denied, attributes, further)
        )
    texts = [
        *(map(warning_in_api_server_words, warned) if api_server_text else _messages_as_sentences(warned)),
        *_messages_as_sentences(_admitted_decisions_to_warn_of(decisions)),
    ]
    return Verdict(
        allowed=not denied,
        decisions=tuple(decisions),
        status=status,
        warnings=_unique_warnings_within_limit(texts) if api_server_text else fit_warnings_to_api_server_limits(texts),
        audit_annotations=audit_annotations(decisions),
        patched_object=attributes.object,
    )


def _decisions_that_only_warn(decisions: Iterable[Decision]) -> Sequence[Decision]:
    return [each for each in decisions if each.action == "deny" and ValidationAction.WARN in each.actions]


def _admitted_decisions_to_warn_of(decisions: Iterable[Decision]) -> Sequence[Decision]:
    return [each for each in decisions if each.warns_user and each.action == "admit"]


def _messages_as_sentences(decisions: Iterable[Decision]) -> Iterator[str]:
    return (each.text for each in _messages_by_severity(decisions))


def warnings_of_decisions(decisions: Sequence[Decision]) -> tuple[str, ...]:
    """Return the warnings of decisions, in claimgate's wording."""
    return fit_warnings_to_api_server_limits(
        [
            *_messages_as_sentences(_decisions_that_only_warn(decisions)),
            *_messages_as_sentences(_admitted_decisions_to_warn_of(decisions)),
        ]
    )


def with_changes_reported(verdict: Verdict, mutations: Iterable[Decision], descriptions: Mapping[str, str]) -> Verdict:
    """Return the verdict with a warning and an annotation for each policy that changed the object.

    Both name the changed fields, and no values. These warnings come last, so they are dropped first above the limit.
    """
    changes: dict[str, dict[str, None]] = {}
    for each in mutations:
        if each.evaluation == "admit" and each.changes:
            changes.setdefault(each.policy, {}).update(dict.fromkeys(each.changes))
    change_texts = {
        policy: _text_about_changes(tuple(each), verdict.patched_object) for policy, each in changes.items()
    }
    warnings = [
        _warning_of_changes(change_text, policy, descriptions.get(policy, ""))
        for policy, change_text in change_texts.items()
    ]
    return replace(
        verdict,
        warnings=fit_warnings_to_api_server_limits([*verdict.warnings, *warnings]),
        audit_annotations={
            **verdict.audit_annotations,
            **{f"{policy}/{APPLIED}": one_line(change_text) for policy, change_text in change_texts.items()},
        },
    )


def _text_about_changes(changed: Sequence[str], root: JSON) -> str:
    # fields after the first are named only if their paths are short
    first, *others = (paths.path_as_text(paths.path_of_json_pointer(each, root)) for each in changed[:_MOST_PATHS])
    shown = [text.shorten_text(first, MAX_WARNING)]
    for path in others:
        if sum(map(len, shown)) + len(path) > MAX_WARNING:
            break
        shown.append(path)
    left = len(changed) - len(shown)
    return f"changed {', '.join(shown)}" + (f" and {counted(left, 'more field')}" if left else "")


def _warning_of_changes(change_text: str, policy: str, description: str) -> str:
    why = " ".join(description.split()).partition(". ")[0].removesuffix(".")
    return (
        f"{change_text}: {why} (policy {policy})" if 0 < len(why) <= MAX_WARNING else f"{change_text} (policy {policy})"
    )


def status_of_denials(
    denied: Sequence[Decision], attributes: Attributes, further: Sequence[Decision] = ()
) -> DenialStatus:
    """Return the status with every denial and its rule, and with the problems of `further`. A long list is shortened.

    Problems that users can fix come first, and among them the most severe. The message has a line for each problem.
    `kubectl` shows the message, or the causes if the reason is Invalid (docs/decisions/0012-how-denials-read.md).
    """
    enforced = {each.text: each for each in _messages_for_users_first(denied)}
    of_further = {
        each.text: each for each in _messages_for_users_first(each for each in further if _is_enforced_denial(each))
    }
    reported = list((enforced | {text: each for text, each in of_further.items() if text not in enforced}).values())
    first = min(denied, key=lambda decision: decision.code != _BAD_REQUEST)
    messages = text.texts_that_fit(_escaped_while_they_fit([each.text for each in reported], MAX_MESSAGE), MAX_MESSAGE)
    note = _FROM_VALIDATING_PHASE.format(count=len(reported) - len(enforced)) if len(reported) > len(enforced) else ""
    return DenialStatus(
        code=first.code,
        reason=first.reason,
        message=text.itemized_text(messages, len(reported) - len(messages), note),
        details=DenialDetails(
            group=attributes.kind.group,
            kind=attributes.kind.kind,
            name=_object_name_for_denial(attributes),
            causes=tuple(_cause_of_denial(each, attributes) for each in reported[: len(messages)]),
        ),
    )


def _is_enforced_denial(decision: Decision) -> bool:
    return decision.action == "deny" and decision.is_enforced


def _messages_for_users_first(decisions: Iterable[Decision]) -> Iterable[_DenialMessage]:
    return sorted(_messages_by_severity(decisions), key=lambda each: each.is_for_administrators)


def _cause_of_denial(denial: _DenialMessage, attributes: Attributes) -> DenialCause:
    # kubectl prints the field first, so a problem of the whole object has the kind as its field. Message and field may
    # contain a text of a user, so both are shortened
    field = _escaped(denial.field, _LONGEST_FIELD) or attributes.kind.kind
    return DenialCause(field=field, message=_escaped(denial.message, MAX_MESSAGE), reason=denial.rule)


def _escaped_while_they_fit(texts: Iterable[str], longest: int) -> list[str]:
    # texts beyond `longest` characters are only counted, so they are not escaped
    escaped: list[str] = []
    left = longest
    for each in texts:
        shown = _escaped(each, longest) if left > 0 else each
        left -= len(shown)
        escaped.append(shown)
    return escaped


def _escaped(message: str, longest: int) -> str:
    # only line breaks around an expression stay
    lines = _LINE_OF_SOURCE.split(text.shorten_text(message, longest))
    return text.shorten_text("\n".join(map(one_line, lines)), longest)


def _denial_status_in_api_server_words(denied: Decision, attributes: Attributes) -> DenialStatus:
    message = text.shorten_text(denial_text_in_api_server_words(denied, attributes), MAX_MESSAGE)
    return DenialStatus(code=denied.code, reason=denied.reason, message=message)


class _DenialMessage(Struct, frozen=True):
    """The message of one problem. `text` is the whole sentence.

    The part after the field is made from the problem `about`, or is `rest` if `about` is None.
    """

    text: str
    field: str
    rule: str
    named: str
    rest: str = ""
    about: Problem | None = None

    @property
    def is_for_administrators(self) -> bool:
        return self.about is not None and self.about.is_for_administrators

    @property
    def message(self) -> str:
        """Return the message without the field, with shortened lists."""
        rest = text.sentence_without_path(self.about) if self.about else self.rest
        return f"{rest} (claimgate: {self.named})"


def _messages_by_severity(decisions: Iterable[Decision]) -> Iterator[_DenialMessage]:
    # the most severe decision first
    for decision in sorted(decisions, key=lambda decision: severity_rank(decision.severity)):
        for problem in decision.problems:
            yield _DenialMessage(
                text=f"{text.problem_as_sentence(problem)} ({problem.code})",
                field=problem.path,
                rule=problem.code,
                named=problem.code,
                about=problem,
            )
        if not decision.problems:
            rule = decision.rule or decision.policy
            sentence = text.shorten_text(text.with_short_expression(decision.message), MAX_MESSAGE - _SUFFIX)
            named = rule if "/" in rule else f"policy {rule}"
            at, rest = paths.split_off_leading_path(sentence)
            bare = rest.removeprefix(":").strip()
            yield _DenialMessage(
                text=f"{sentence} ({named})", field=paths.path_as_text(at), rule=rule, named=named, rest=bare
            )


def denial_text_in_api_server_words(decision: Decision, attributes: Attributes) -> str:
    """Return the text of a denial in the wording of API servers."""
    if decision.code == 500:
        return f"Internal error occurred: {decision.message}"
    denied = f"denied request: {decision.message}"
    if decision.kind == "mutating" and not decision.binding:
        return f'policy "{decision.policy}" {denied}'
    sentence = f"'{decision.policy}' with binding '{decision.binding}' {denied}"
    if decision.kind == "mutating":
        return f"policy {sentence}"
    sentence = sentence if decision.binding else f"'{decision.policy}' {denied}"
    resource = attributes.request_resource
    full = f"{resource.resource}.{resource.group}" if resource.group else resource.resource
    return (
        f"{full} {json.dumps(_object_name_for_denial(attributes))} is forbidden: ValidatingAdmissionPolicy {sentence}"
    )


def _object_name_for_denial(attributes: Attributes) -> str:
    # k8s.io/apiserver v0.36 pkg/admission/errors.go, extractResourceName
    metadata = (attributes.object or {}).get("metadata") or {}
    named = metadata if isinstance(metadata, dict) else {}
    return str(attributes.name or named.get("name") or named.get("generateName") or "Unknown")


def warning_in_api_server_words(decision: Decision) -> str:
    """Return a warning in the wording of API servers."""
    return (
        f"Validation failed for ValidatingAdmissionPolicy '{decision.policy}' with binding '{decision.binding}': "
        f"{decision.message}"
    )


def _unique_warnings_within_limit(texts: Iterable[str]) -> tuple[str, ...]:
    # the API server shortens each warning
    kept: list[str] = []
    remaining = MAX_WARNINGS
    for warning in dict.fromkeys(texts):
        if remaining <= 0:
            break
        kept.append(text.shorten_text(warning, MAX_MESSAGE))
        remaining -= min(len(warning), MAX_WARNING)
    return tuple(kept)


def fit_warnings_to_api_server_limits(texts: Iterable[str]) -> tuple[str, ...]:
    """Return the warnings, each once and on one line, with at most 4096 characters together.

    An API server passes these warnings on unchanged. Above 4096 characters together, the server would cut each warning
    at 256 characters. If warnings are dropped, the last warning gives their number.
    """
    lines = [line for line in _warnings_on_one_line(dict.fromkeys(texts)) if line]
    if sum(map(len, lines)) <= MAX_WARNINGS:
        return tuple(lines)
    kept: list[str] = []
    remaining = MAX_WARNINGS - _MORE
    for line in lines:
        shown = line if kept else text.shorten_text(line, remaining)
        if len(shown) > remaining:
            break
        kept.append(shown)
        remaining -= len(shown)
    left = len(lines) - len(kept)
    return (*kept, f"and {counted(left, 'more warning')}") if left else tuple(kept)


def _warnings_on_one_line(texts: Iterable[str]) -> Iterator[str]:
    # control characters become visible escapes, because an API server drops a warning with a control character. A text
    # may contain very long names, so at most its first 16,384 characters are read. Warnings beyond the limit are only
    # counted, so they are not escaped
    left = MAX_WARNINGS
    for each in texts:
        shown = each[: 4 * MAX_WARNINGS].strip()
        yield (one_line(shown) if left > 0 else shown)
        left -= len(shown)


def audit_annotations(decisions: Sequence[Decision]) -> Mapping[str, str]:
    """Return audit annotations.

    The annotations have the values that policies publish (`policy/key`), and the failures with action Audit. They also
    name the rules that would deny or warn without the limit of the installation.
    """
    published: dict[str, dict[str, None]] = {}
    failures: list[JSON] = []
    left = MAX_ANNOTATION
    for decision in decisions:
        for key, value in decision.audit_annotations.items() if decision.audit_annotations else ():
            published.setdefault(f"{decision.policy}/{key}", {})[value] = None
        if decision.withheld:
            named = published.setdefault(WITHHELD_KEYS[decision.withheld], {})
            named.update(dict.fromkeys(decision.broken_rules))
        if decision.action == "deny" and ValidationAction.AUDIT in decision.actions and left > 0:
            failures.append(_audit_annotation_of_failure(decision))
            left -= len(decision.message) + len(decision.policy) + len(decision.binding)
    annotations = {key: text.shorten_text(", ".join(values), MAX_ANNOTATION) for key, values in published.items()}
    return {**annotations, FAILURE_KEY: _json_as_go_writes(failures)} if failures else annotations


def _audit_annotation_of_failure(decision: Decision) -> JSON:
    return {
        "message": text.shorten_text(decision.message, MAX_MESSAGE),
        "policy": decision.policy,
        "binding": decision.binding,
        "expressionIndex": decision.index or 0,
        "validationActions": list(decision.actions),
    }


def _json_as_go_writes(value: JSON) -> str:
    # as Go's encoding/json: compact, with <, > and & escaped for HTML
    encoded = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    for character in "<>&\u2028\u2029":
        encoded = encoded.replace(character, f"\\u{ord(character):04x}")
    return encoded


def limit_actions(decisions: Iterable[Decision], most: EnforcementAction) -> tuple[Decision, ...]:
    """Return the decisions, and replace actions that are stricter than `most`.

    With `warn`, a denial becomes a warning. With `audit`, denials and warnings become audit annotations. A failed
    mutation under failurePolicy Fail has no actions of a binding: it becomes a warning with `warn`, and is not reported
    with `audit`. The field `withheld` of a decision has the prevented action.
    """
    return tuple(decisions) if most == "deny" else tuple(_limit_action(each, most) for each in decisions)


def _limit_action(decision: Decision, most: EnforcementAction) -> Decision:
    warns = most == "warn"
    if decision.kind == "mutating" and decision.action == "deny":
        return replace(decision, lets_pass=True, warns_user=warns, withheld="deny")
    actions = decision.actions
    if warns and ValidationAction.DENY in actions:
        actions = tuple(dict.fromkeys(ValidationAction.WARN if a is ValidationAction.DENY else a for a in actions))
    elif not warns and not _QUIET.issuperset(actions):
        actions = (ValidationAction.AUDIT,)
    warns_user = decision.warns_user and warns
    if actions == decision.actions and warns_user == decision.warns_user:
        return decision
    withheld: Literal["", "deny", "warn"] = ""
    if decision.action == "deny" and ValidationAction.DENY in decision.actions:
        withheld = "deny"
    elif not warns and (
        decision.warns_user or (decision.action == "deny" and ValidationAction.WARN in decision.actions)
    ):
        withheld = "warn"
    return replace(decision, actions=actions, warns_user=warns_user, withheld=withheld)


def without_patch(verdict: Verdict) -> Verdict:
    """Return the verdict without a patch; each mutating policy with a change gets an annotation."""
    annotations = dict(verdict.audit_annotations)
    for decision in verdict.decisions:
        if decision.kind == "mutating" and decision.evaluation == "admit":
            annotations[f"{decision.policy}/{NOT_APPLIED}"] = "the object would have been changed"
    return replace(verdict, audit_annotations=annotations)
