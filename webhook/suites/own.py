"""Reads `suite.yaml` in the folder of a policy, in claimgate's format, which forbids unknown fields.

A suite runs only the policies of its folder. suite_model.py has the fields. Names of files are relative to the suite.

For each suite, untried validations, rules and match conditions are reported. A case tries a validation or a rule by
breaking it, and a match condition by making it false. Without a case that tries a validation, all cases would also
pass without the validation.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Sequence
from functools import cache, partial

from pydantic import BaseModel, ValidationError

from webhook.admission import fixtures
from webhook.admission.phases import PhasesOutcome
from webhook.apimachinery.attributes import JSON, Attributes, Operation
from webhook.apimachinery.paths import FieldPath, path_as_text
from webhook.cel.library.authorizer import NO_ENTRY
from webhook.errors import CallError, InputError, InputProblem, PolicyError, UnknownRule
from webhook.manifests.configuration import NAME, read_configuration
from webhook.policy.compiled import Policy
from webhook.policy.configured_rules import apply_configuration_to_policies
from webhook.policy.load import Options, load_policy_set
from webhook.policy.param_rules import ParamRuleChecker
from webhook.policy.policy_set import PolicySet
from webhook.rules.decisions import Decision
from webhook.suites.case import Case, Entry, Request, UnreadableCase, answer_of_case
from webhook.suites.expectation import Expectation, advice_texts, message_texts
from webhook.suites.files import Suite
from webhook.suites.suite_model import CaseModel, SuiteModel
from webhook.text.model_errors import describe_mistake_of_model
from webhook.text.wording import counted
from webhook.yamltext import yamlfile
from webhook.yamltext.input_files import InputFile


def read_own_cases(suite: Suite, documents: Sequence[yamlfile.Document], options: Options) -> Iterator[Entry]:
    """Yield the cases of one suite file. A mistake in a case does not affect other cases.

    Raises:
        InputError: the file has no list of cases. The error lists every mistake with line and column.
    """
    policies = cache(lambda: policies_of_suite(suite, options))
    try:
        policies()
    except (PolicyError, InputError) as error:  # reported once, and not for each case
        yield UnreadableCase(id=f"{suite.folder.name}/policies", suite=str(suite.file), problems=error.problems)
        return
    for case, line in _read_cases_with_lines(suite, documents):
        if isinstance(case, UnreadableCase):
            yield case
            continue
        yield Case(
            line=line,
            parts=partial(_parts, policies),
            tried=partial(_tried_parts_of_case, case, suite, policies, options),
            undecided=partial(_undecided_messages, case, suite, policies, options),
            id=f"{suite.folder.name}/{case.name}",
            suite=str(suite.file),
            mismatches=partial(_mismatches, case, suite, policies, options),
            notes=partial(_notes, case, suite),
            advice=partial(_advice, case, suite, policies, options),
        )


def policies_of_suite(suite: Suite, options: Options) -> PolicySet:
    """Return the policies in the folder of a suite, under the claimgate.yaml of the folder.

    Raises:
        PolicyError: the policies have problems. The error lists all problems.
        InputError: a file leads out of the folder of the run, or the configuration has mistakes.
    """
    policies = load_policy_set([suite.policies_folder()], options, str(suite.root))
    file = suite.folder / NAME
    if not file.exists():
        return policies
    return apply_configuration_to_policies(policies, read_configuration(InputFile(str(file), str(suite.root))))


def _notes(case: CaseModel, suite: Suite) -> tuple[str, ...]:
    note = fixtures.note_on_v1beta1_review(_load_one_object(case.subject, suite))
    return (note,) if note else ()


def cases(suite: Suite, documents: Sequence[yamlfile.Document] | None = None) -> Iterator[CaseModel]:
    """Yield the cases of one suite file unchanged. `documents` are the documents of the file, if already read.

    Raises:
        InputError: the file has mistakes. The error lists every mistake with line and column.
    """
    documents_of_file = yamlfile.read(suite.input) if documents is None else documents
    for entry, _ in _read_cases_with_lines(suite, documents_of_file):
        if isinstance(entry, UnreadableCase):
            raise InputError(*entry.problems)
        yield entry


def _read_cases_with_lines(
    suite: Suite, documents: Sequence[yamlfile.Document]
) -> Iterator[tuple[CaseModel | UnreadableCase, int]]:
    """Yield each case, or its mistakes, with its line."""
    if len(documents) != 1:
        message = f"expected one document with cases, found {len(documents)}"
        raise InputError(InputProblem(message=message, file=str(suite.file)))
    seen: set[str] = set()
    for index, raw in enumerate(_read_raw_cases(documents[0])):
        case = _validated(raw, index, documents[0], seen)
        line, _ = documents[0].position(("cases", index))
        if isinstance(case, CaseModel):
            seen.add(case.name)
            yield case, line
        else:
            name = raw.get("name") if isinstance(raw, dict) else None
            id_ = f"{suite.folder.name}/{name or f'cases[{index}]'}"
            yield UnreadableCase(id=id_, suite=str(suite.file), problems=case), line


def _read_raw_cases(document: yamlfile.Document) -> Sequence[JSON]:
    try:
        return SuiteModel.model_validate(document.value).cases
    except ValidationError as error:
        raise InputError(*_problems_of_validation_error(document, (), SuiteModel, error)) from None


def _validated(
    raw: JSON, index: int, document: yamlfile.Document, seen: Container[str]
) -> CaseModel | tuple[InputProblem, ...]:
    path = ("cases", index)
    try:
        case = CaseModel.model_validate(raw, by_alias=True, by_name=False)
    except ValidationError as error:
        return tuple(_problems_of_validation_error(document, path, CaseModel, error))
    if case.subject is None:
        return (document.problem((*path, "input"), "is required; a DELETE may have oldInput instead"),)
    if wrong := _mistake_of_operation(case):
        return (document.problem((*path, wrong[0]), wrong[1]),)
    if case.name in seen:
        text = f"two cases have the name `{case.name}`; give each case another name"
        return (document.problem((*path, "name"), text),)
    return case


def _mistake_of_operation(case: CaseModel, value: JSON = None) -> tuple[str, str] | None:
    """Return a field that has no effect together with the other fields of a case, and a text with the fix; None without
    such a field. `value` is the object of `input`.
    """
    written = case.model_fields_set
    if fixtures.is_review_or_request(case.subject if value is None else value):
        needless = "operation" if "operation" in written else "oldInput" if "old_input" in written else ""
        place = "operation" if needless == "operation" else "oldObject"
        fix = f"write it as `{place}` of the request, or give the object alone as `input`"
        return (needless, f"is not read beside a whole request, which has this field: {fix}") if needless else None
    if "old_input" in written and case.operation in ("CREATE", "CONNECT"):
        return "oldInput", f"a {case.operation} has no old object: add `operation: UPDATE`, or remove oldInput"
    return None


def _problems_of_validation_error(
    document: yamlfile.Document, path: FieldPath, model: type[BaseModel], error: ValidationError
) -> Iterator[InputProblem]:
    for each in error.errors():
        yield document.problem((*path, *each["loc"]), describe_mistake_of_model(model, each))


def _advice(case: CaseModel, suite: Suite, policies: Callable[[], PolicySet], options: Options) -> tuple[str, ...]:
    return advice_texts(answer_of_case(request_of_case(case, suite, policies, options)))


def _parts(policies: Callable[[], PolicySet]) -> tuple[str, ...]:
    return parts_to_try(policies())


def _tried_parts_of_case(
    case: CaseModel, suite: Suite, policies: Callable[[], PolicySet], options: Options
) -> frozenset[str]:
    outcome = answer_of_case(request_of_case(case, suite, policies, options), explains=True)
    return tried_parts(outcome, policies())


def _undecided_messages(
    case: CaseModel, suite: Suite, policies: Callable[[], PolicySet], options: Options
) -> tuple[str, ...]:
    """Return the messages about rules that were not evaluated, unless the case expects them, or a denial."""
    if case.expect.unknown is not None or case.expect.allowed is False:
        return ()
    return message_texts(answer_of_case(request_of_case(case, suite, policies, options)), "unknown")


def _mismatches(case: CaseModel, suite: Suite, policies: Callable[[], PolicySet], options: Options) -> tuple[str, ...]:
    outcome = answer_of_case(request_of_case(case, suite, policies, options))
    expected = case.expect.model_dump()
    published = expected.pop("audit_annotations")
    differences = Expectation(rules=case.rules, published_annotations=published, **expected).judge(outcome)
    return differences if case.expect.unknown is not None else (*differences, *_unanswered_questions(outcome))


def _unanswered_questions(outcome: PhasesOutcome) -> Iterator[str]:
    """Yield a sentence for each policy that is not evaluated because a question to `authorizer` has no answer."""
    for text in message_texts(outcome, "unknown"):
        _, has_question, question = text.partition(NO_ENTRY)
        if has_question:
            fix = "write the answer under `authorizer`, or expect this in `unknown`"
            yield f"authorizer: a policy is not evaluated, because it asks about{question}: {fix}"


def request_of_case(case: CaseModel, suite: Suite, policies: Callable[[], PolicySet], options: Options) -> Request:
    """Return the request of a case.

    Raises:
        InputError: a file of the case cannot be read, or the request cannot be sent.
        UnknownRule: a param names a rule that does not exist.
    """
    context = [context_object for part in (*case.params, *case.context) for context_object in _objects(part, suite)]
    loaded = policies()
    rules = ParamRuleChecker(loaded.policies, loaded.registry, own_namespace=loaded.own_namespace)
    if wrong := [
        InputProblem(message=text, path=path_as_text(at))
        for obj in context
        for at, text in rules.mistakes_if_object_is_param(obj)
    ]:
        raise UnknownRule(*wrong)
    return Request(
        attributes=_attributes(case, suite, options),
        policies=loaded,
        phase=case.phase,
        context=tuple(context),
        context_is_whole=case.context_is_whole,
        authorizer=[each.entry for each in case.authorizer],
    )


def object_as_written(case: CaseModel, suite: Suite, attributes: Attributes) -> tuple[JSON, JSON]:
    """Return the object of a case as its author wrote it, and for an update the object before.

    Raises:
        InputError: a file that it names cannot be read.
    """
    value, old = _load_one_object(case.subject, suite), attributes.old_object
    if fixtures.is_review_or_request(value):
        return (old, None) if attributes.object is None else (attributes.object, old)
    if attributes.object is None or old is None:
        return value, None
    return value, value if case.old_input is None else _load_one_object(case.old_input, suite)


def _attributes(case: CaseModel, suite: Suite, options: Options) -> Attributes:
    value = _load_one_object(case.subject, suite)
    if wrong := _mistake_of_operation(case, value):
        raise InputError(InputProblem(message=wrong[1], path=wrong[0]))
    try:
        if fixtures.is_review(value) or fixtures.is_request(value):
            recorded = fixtures.attributes_of_fixture(value, options.table.row)
            return fixtures.with_defaults_filled_in(recorded) if case.defaults else recorded
        return fixtures.attributes_of_object(
            value,
            options.table.row,
            operation=Operation(case.operation),
            old_object=None if case.old_input is None else _load_one_object(case.old_input, suite),
            fills_defaults=case.defaults is not False,
        )
    except CallError as error:
        raise InputError(InputProblem(message=error.message, path="input")) from None


def _load_one_object(value: JSON, suite: Suite) -> JSON:
    """The value is the object itself or the name of its file."""
    objects = list(_objects(value, suite))
    if len(objects) != 1:
        raise InputError(InputProblem(message=f"`{value}` contains {counted(len(objects), 'object')}, expected one"))
    return objects[0]


def _objects(value: JSON, suite: Suite) -> tuple[JSON, ...]:
    return suite.objects([value]) if isinstance(value, str) else (value,)


def parts_to_try(policies: PolicySet) -> tuple[str, ...]:
    """Return the names of the parts of policies that cases can try, in the order of the policies."""
    return tuple(dict.fromkeys(part for policy in policies.policies for part in _parts_of_policy(policy)))


def tried_parts(outcome: PhasesOutcome, policies: PolicySet) -> frozenset[str]:
    """Return the names of the parts that a case tried. The outcome must have explanations."""
    by_name = {policy.name: policy for policy in policies.validating}
    decisions = ((decision, by_name.get(decision.policy)) for _, decision in (*outcome.decisions, *outcome.further))
    broken = (
        part
        for decision, policy in decisions
        if policy and decision.action == "deny"
        for part in _broken_parts(decision, policy)
    )
    unmet = (
        _name_of_condition(each.policy, each.unmet_condition)
        for _, each in outcome.explanations
        if each.unmet_condition
    )
    return frozenset((*broken, *unmet))


def _parts_of_policy(policy: Policy) -> Iterator[str]:
    if policy.kind == "validating":
        yield from [rule.id for rule in (*policy.catalogue.values(), *policy.named)] or [
            _name_of_validation(policy, index) for index in range(policy.rule_count)
        ]
    yield from (_name_of_condition(policy.name, each.name) for each in policy.match_conditions().conditions)


def _broken_parts(decision: Decision, policy: Policy) -> tuple[str, ...]:
    if decision.problems:
        return tuple(each.code for each in decision.problems)
    if decision.index is None or policy.catalogue or policy.named:
        return (decision.rule,)
    return (_name_of_validation(policy, decision.index),)


def _name_of_validation(policy: Policy, index: int) -> str:
    return policy.name if policy.rule_count == 1 else f"{policy.name} validations[{index}]"


def _name_of_condition(policy: str, condition: str) -> str:
    return f"{policy} matchCondition {condition}"
