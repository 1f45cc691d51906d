"""Compares an answer with the expectation of a case, and describes every difference."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

from webhook.admission.phases import PhasesOutcome
from webhook.apimachinery import paths
from webhook.apimachinery.attributes import JSON
from webhook.rules.decisions import ValidationAction
from webhook.text.terminal import one_line
from webhook.yamltext import yamlfile


class Expectation(Struct, frozen=True, kw_only=True):
    """The expected parts of an answer. Parts that are None are not compared.

    Attributes:
        message: a part of the denial's text.
        warnings, advice, audited, unknown, errors: a part of each text.
        audit_annotations: all annotations of the verdict.
        published_annotations: the annotations that policies publish.
        patched: a part of the resulting object.
        patched_object: the whole resulting object.
        patch: the exact operations.
        matched: whether any policy matches the request.
        rules: ids of rules. A case that expects a denial or warnings should break these rules, and other cases should
            not.
    """

    allowed: bool | None = None
    code: int | None = None
    reason: str | None = None
    message: str | None = None
    warnings: Sequence[str] | None = None
    warns: bool | None = None
    advice: Sequence[str] | None = None
    unknown: Sequence[str] | None = None
    errors: Sequence[str] | None = None
    matched: bool | None = None
    patched: JSON = None
    patched_object: JSON = None
    patch: Sequence[JSON] | None = None
    audit_annotations: Mapping[str, str] | None = None
    published_annotations: Mapping[str, str] | None = None
    audited: Sequence[str] | None = None
    rules: Sequence[str] = ()

    def judge(self, outcome: PhasesOutcome) -> tuple[str, ...]:
        """Return every difference between the expectation and the outcome."""
        return (
            *self._verdict_differences(outcome),
            *self._rule_differences(outcome),
            *self._text_differences(outcome),
            *self._patch_differences(outcome),
        )

    @property
    def is_bad_example(self) -> bool:
        """Return whether the case is an example of a broken rule."""
        return self.allowed is False or bool(self.warnings or self.advice)

    def _rule_differences(self, outcome: PhasesOutcome) -> Iterator[str]:
        actual = broken_rules(outcome)
        state = "broken" if self.is_bad_example else "kept"
        for rule in self.rules:
            if (rule in actual) is not self.is_bad_example:
                yield f"rule: expected `{rule}` to be {state}, found broken rules: {', '.join(actual) or 'none'}"

    def _verdict_differences(self, outcome: PhasesOutcome) -> Iterator[str]:
        verdict, status = outcome.verdict, outcome.verdict.status
        message = one_line(status.message) if status else ""
        actual = f"{status.code} {status.reason}: {message}" if status and not verdict.allowed else "allowed"
        if self.allowed is not None and verdict.allowed is not self.allowed:
            yield f"verdict: expected {'allowed' if self.allowed else 'denied'}, found {actual}"
        elif not verdict.allowed and status is not None:
            yield from _value_difference("code", self.code, status.code)
            yield from _value_difference("reason", self.reason, status.reason)
            if self.message is not None and self.message not in status.message:
                yield f"message: expected a text with\n  - {one_line(self.message)}\nfound\n  + {message}"
        is_matched = bool(outcome.decisions)
        if self.matched is not None and is_matched is not self.matched:
            policies = ", ".join(sorted({decision.policy for _, decision in outcome.decisions})) or "none"
            yield f"matched: expected {_word(self.matched)}, found policies that match: {policies}"

    def _text_differences(self, outcome: PhasesOutcome) -> Iterator[str]:
        warnings = outcome.verdict.warnings
        yield from _difference_of_texts("warnings", self.warnings, warnings)
        if self.warns is not None and bool(warnings) is not self.warns:
            yield f"warnings: expected {'some' if self.warns else 'none'}, found {len(warnings)}"
        yield from _difference_of_texts("advice", self.advice, advice_texts(outcome))
        yield from _difference_of_texts("unknown", self.unknown, message_texts(outcome, "unknown"))
        yield from _difference_of_texts("errors", self.errors, message_texts(outcome, "error"))
        yield from _difference_of_texts("audited", self.audited, audited_texts(outcome))
        yield from self._annotation_differences(outcome)
        yield from _value_difference(
            "auditAnnotations", self.audit_annotations, dict(outcome.verdict.audit_annotations)
        )

    def _annotation_differences(self, outcome: PhasesOutcome) -> Iterator[str]:
        if self.published_annotations is None:
            return
        published = published_annotations(outcome)
        full_names = {name.rpartition("/")[2]: name for name in reversed([*published])}
        annotations = {full_names.get(key, key): value for key, value in self.published_annotations.items()}
        if annotations != published:
            yield f"auditAnnotations: expected (-), found (+)\n{diff_as_yaml(annotations, published)}"

    def _patch_differences(self, outcome: PhasesOutcome) -> Iterator[str]:
        changed = outcome.patched_object
        if self.patched is not None:
            differences = list(missing_from_found(self.patched, changed, ()))
            if differences:
                yield "patched: the resulting object differs\n" + "\n".join(differences)
        if self.patched_object is not None and self.patched_object != changed:
            yield "patched object:\n" + diff_as_yaml(self.patched_object, changed)
        if self.patch is not None and list(self.patch) != list(outcome.verdict.patch):
            yield "patch:\n" + diff_as_yaml(list(self.patch), list(outcome.verdict.patch))


def broken_rules(outcome: PhasesOutcome) -> tuple[str, ...]:
    """Return the ids of the broken rules in the order of the decisions, including further decisions after a denial."""
    rules: dict[str, None] = {}
    for _, decision in (*outcome.decisions, *outcome.further):
        if decision.action == "deny":
            rules.update(
                dict.fromkeys(problem.code for problem in decision.problems)
                if decision.problems
                else {decision.rule: None}
            )
    return tuple(rules)


def advice_texts(outcome: PhasesOutcome) -> tuple[str, ...]:
    """Return the distinct texts of advice, in order."""
    return tuple(dict.fromkeys(decision.message for _, decision in outcome.decisions if decision.is_advice))


def audited_texts(outcome: PhasesOutcome) -> tuple[str, ...]:
    """Return the distinct texts that a binding with the action Audit writes into audit annotations, in order."""
    failed = (decision for _, decision in outcome.decisions if decision.action == "deny")
    return tuple(dict.fromkeys(decision.message for decision in failed if ValidationAction.AUDIT in decision.actions))


def published_annotations(outcome: PhasesOutcome) -> Mapping[str, str]:
    """Return the values of the auditAnnotations of policies, by `policy/key`."""
    values: dict[str, dict[str, None]] = {}
    for _, decision in outcome.decisions:
        for key, value in decision.audit_annotations.items():
            values.setdefault(f"{decision.policy}/{key}", {})[value] = None
    return {name: ", ".join(of_name) for name, of_name in values.items()}


def message_texts(outcome: PhasesOutcome, evaluation: str) -> tuple[str, ...]:
    """Return the distinct messages of decisions with this evaluation, in order."""
    return tuple(
        dict.fromkeys(decision.message for _, decision in outcome.decisions if decision.evaluation == evaluation)
    )


def missing_from_found(expected: JSON, actual: JSON, path: paths.FieldPath) -> Iterator[str]:
    """Yield the parts of `expected` that `actual` lacks. Maps may have more keys, and lists must have equal lengths."""
    if isinstance(expected, dict) and isinstance(actual, dict):
        for key, value in expected.items():
            if key in actual:
                yield from missing_from_found(value, actual[key], (*path, key))
            else:
                yield f"  - {paths.path_as_text((*path, key))}: {_inline(value)}\n  + absent"
    elif isinstance(expected, list) and isinstance(actual, list) and len(expected) == len(actual):
        for index, (value, other) in enumerate(zip(expected, actual, strict=True)):
            yield from missing_from_found(value, other, (*path, index))
    elif expected != actual or isinstance(expected, bool) is not isinstance(actual, bool):
        yield f"  - {paths.path_as_text(path)}: {_inline(expected)}\n  + {paths.path_as_text(path)}: {_inline(actual)}"


def diff_as_yaml(expected: JSON, actual: JSON) -> str:
    """Return a unified diff of two values as YAML. Keys are sorted."""
    before, after = (yamlfile.dump(_sorted(value)).splitlines() for value in (expected, actual))
    lines = difflib.unified_diff(before, after, "expected", "found", n=2, lineterm="")
    return "\n".join(f"  {line}" for line in lines)


def _sorted(value: JSON) -> JSON:
    if isinstance(value, Mapping):
        return {key: _sorted(value[key]) for key in sorted(value)}
    return [_sorted(item) for item in value] if isinstance(value, list | tuple) else value


def _value_difference(name: str, expected: JSON, actual: JSON) -> Iterator[str]:
    if expected is not None and expected != actual:
        yield f"{name}: expected {_inline(expected)}, found {_inline(actual)}"


def _difference_of_texts(name: str, expected: Sequence[str] | None, actual: Sequence[str]) -> Iterator[str]:
    """Yield a difference, unless each text can be paired with a different expected part that the text contains."""
    if expected is None or _can_be_paired(list(expected), list(actual)):
        return
    shown = [f"  - {one_line(text)}" for text in expected] or ["  - none"]
    shown += [f"  + {one_line(text)}" for text in actual] or ["  + none"]
    yield f"{name}: expected texts with (-), found (+)\n" + "\n".join(shown)


def _can_be_paired(parts: list[str], texts: list[str]) -> bool:
    if len(parts) != len(texts):
        return False
    if not parts:
        return True
    first, *rest = parts
    return any(first in text and _can_be_paired(rest, texts[:at] + texts[at + 1 :]) for at, text in enumerate(texts))


def _inline(value: JSON) -> str:
    return (
        yamlfile.dump(value).strip().removesuffix("\n...")
        if isinstance(value, str | int | float | None)
        else str(value)
    )


def _word(value: bool) -> str:
    return "yes" if value else "no"
