"""Authorization checks: kubernetes.authz, since 1.27; selectors since 1.31.

Source: k8s.io/apiserver v0.36.1 pkg/cel/library/authz.go. The caller supplies an Authorizer. Outside a cluster,
ListedAuthorizer answers from a list of decisions. A question without a decision is an error, never a guess. The
examples use the user `alice` and these decisions:

    - {verb: get, resource: secrets, namespace: team, allowed: true, reason: "RBAC: allowed"}
    - {verb: get, path: /healthz, allowed: false}
    - {verb: list, resource: pods, allowed: false, error: no kubelet}
    - {user: "system:serviceaccount:team:robot", verb: create, group: apps, resource: web, allowed: true}

kubernetes.authorization.Authorizer.path(string) -> kubernetes.authorization.PathCheck

    authorizer.path('/healthz').check('get').allowed() // false
    authorizer.path(' ') // error: path must not be empty

kubernetes.authorization.Authorizer.group(string) -> kubernetes.authorization.GroupCheck

    authorizer.group('').resource('secrets').namespace('team').check('get').allowed() // true
    authorizer.group(dyn(1)) // error: no such overload

kubernetes.authorization.Authorizer.serviceAccount(string, string) -> kubernetes.authorization.Authorizer
    An authorizer for the service account with this namespace and name.

    authorizer.serviceAccount('team', 'robot').group('apps').resource('web').check('create').allowed() // true
    authorizer.serviceAccount('team', 'Robot') // error: Invalid service account name
    authorizer.serviceAccount('Team', 'robot') // error: Invalid service account namespace

kubernetes.authorization.GroupCheck.resource(string) -> kubernetes.authorization.ResourceCheck

    authorizer.group('').resource('') // error: resource must not be empty
    authorizer.group('').resource('pods').check('list').allowed() // false

kubernetes.authorization.ResourceCheck.subresource(string) -> kubernetes.authorization.ResourceCheck

    authorizer.group('').resource('pods').subresource('log').check('get') // error: authorizer:
    authorizer.group('').resource('pods').subresource('').check('list').allowed() // false

kubernetes.authorization.ResourceCheck.namespace(string) -> kubernetes.authorization.ResourceCheck

    authorizer.group('').resource('secrets').namespace('team').check('get').reason() // 'RBAC: allowed'
    authorizer.group('').resource('secrets').namespace('other').check('get') // error: authorizer: no decision is given

kubernetes.authorization.ResourceCheck.name(string) -> kubernetes.authorization.ResourceCheck

    authorizer.group('').resource('secrets').namespace('team').name('s').check('get').allowed() // true
    authorizer.group('').resource('pods').name(dyn(1)) // error: no such overload

kubernetes.authorization.ResourceCheck.fieldSelector(string) -> kubernetes.authorization.ResourceCheck

    authorizer.group('').resource('pods').fieldSelector('spec.nodeName=a').check('list').allowed() // false
    authorizer.group('').resource('pods').fieldSelector(dyn(1)) // error: no such overload

kubernetes.authorization.ResourceCheck.labelSelector(string) -> kubernetes.authorization.ResourceCheck

    authorizer.group('').resource('pods').labelSelector('a=b').check('list').allowed() // false
    authorizer.group('').resource('pods').labelSelector(dyn(1)) // error: no such overload

kubernetes.authorization.PathCheck.check(string) -> kubernetes.authorization.Decision
    ResourceCheck has the same function. A check costs 350,000, so one expression can have two checks.

    authorizer.path('/healthz').check('get').reason() // ''
    authorizer.path('/metrics').check('get') // error: authorizer: no decision is given

kubernetes.authorization.Decision.allowed() -> bool

    authorizer.path('/healthz').check('get').allowed() // false
    dyn(true).allowed() // error: no such overload

kubernetes.authorization.Decision.reason() -> string

    authorizer.group('').resource('secrets').namespace('team').check('get').reason() // 'RBAC: allowed'
    dyn('').reason() // error: no such overload

kubernetes.authorization.Decision.errored() -> bool

    authorizer.group('').resource('pods').check('list').errored() // true
    dyn(true).errored() // error: no such overload

kubernetes.authorization.Decision.error() -> string

    authorizer.group('').resource('pods').check('list').error() // 'no kubelet'
    authorizer.path('/healthz').check('get').error() // ''
    dyn('').error() // error: no such overload
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from math import ceil
from typing import Any, ClassVar, Final, Protocol

from msgspec import Struct, structs

from webhook.apimachinery.attributes import JSON
from webhook.apimachinery.names import dns1123_label_errors, dns1123_subdomain_errors
from webhook.cel.library import costs
from webhook.cel.library.declaration import Overload, Version
from webhook.cel.types import BOOL, STRING, Type, opaque_type
from webhook.errors import EvaluationError, NoDecision, ReviewPaused

AUTHORIZER = opaque_type("kubernetes.authorization.Authorizer")
PATH_CHECK = opaque_type("kubernetes.authorization.PathCheck")
GROUP_CHECK = opaque_type("kubernetes.authorization.GroupCheck")
RESOURCE_CHECK = opaque_type("kubernetes.authorization.ResourceCheck")
DECISION = opaque_type("kubernetes.authorization.Decision")

CHECK_COST = 350_000
"""The cost of a check (cost.go). The limit of an expression, 1,000,000, allows two checks."""


class AuthorizationQuestion(Struct, frozen=True, kw_only=True):
    """Whether a user may do something; either `path` or `resource` is set.

    `user` is the name of the sender of the request. With `is_service_account`, `user` is the name of a service account
    instead, which has the groups of its namespace.
    """

    user: str = ""
    verb: str = ""
    path: str = ""
    group: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    field_selector: str = ""
    label_selector: str = ""
    is_service_account: bool = False

    def __str__(self) -> str:
        texts = ((name, getattr(self, name)) for name in _TEXTS)
        return " ".join(f"{name} `{value}`" for name, value in texts if value)


class AuthorizationDecision(Struct, frozen=True, kw_only=True):
    """The answer to a question; `error` is None if the authorizer reported no error."""

    cel_type: ClassVar[Type] = DECISION

    allowed: bool
    reason: str = ""
    error: str | None = None


class Authorizer(Protocol):
    """Answers questions; raises EvaluationError."""

    def decide(self, question: AuthorizationQuestion) -> AuthorizationDecision:
        """Return the decision on one question."""


_TEXTS = tuple(each.name for each in structs.fields(AuthorizationQuestion) if each.type is str)
_KEYS = {
    **{name: name for name in _TEXTS},
    "fieldSelector": "field_selector",
    "labelSelector": "label_selector",
}


NO_ENTRY: Final = "authorizer: no decision is given for"
"""The beginning of the error for an unanswered question."""


class ListedAuthorizer:
    """An Authorizer that answers with the first entry of a list that matches the question.

    Args:
        entries: the keys user, verb, group, resource, subresource, namespace, name, path, fieldSelector and
            labelSelector say which questions an entry matches. A missing key matches any value. The keys allowed,
            reason and error are the answer.
    """

    def __init__(self, entries: Iterable[Mapping[str, JSON]]) -> None:
        self._entries = tuple(entries)

    def decide(self, question: AuthorizationQuestion) -> AuthorizationDecision:
        """Return the decision of the first entry that matches.

        Raises:
            NoDecision: no entry matches.
        """
        for entry in self._entries:
            if all(getattr(question, _KEYS[key]) == value for key, value in entry.items() if key in _KEYS):
                error = entry.get("error")
                allowed = entry.get("allowed") is True and error is None
                return AuthorizationDecision(allowed=allowed, reason=entry.get("reason", ""), error=error)
        raise NoDecision(f"{NO_ENTRY} {question}")


class UnansweredQuestion(ReviewPaused):
    """Stops the evaluation of a review until a question has an answer."""

    def __init__(self, question: AuthorizationQuestion) -> None:
        super().__init__(str(question))
        self.question = question


class PausingAuthorizer:
    """An Authorizer that knows some answers. Any other question raises UnansweredQuestion.

    Args:
        known_answers: for each question its decision, or the reason why there is no decision.
        max_questions: the most questions that a review may ask.

    Attributes:
        unanswered: the reasons for missing decisions, each once.
    """

    def __init__(
        self, known_answers: Mapping[AuthorizationQuestion, AuthorizationDecision | str], max_questions: int
    ) -> None:
        self.unanswered: dict[str, None] = {}
        self._known_answers = known_answers
        self._max_questions = max_questions

    def decide(self, question: AuthorizationQuestion) -> AuthorizationDecision:
        """Return the decision on an answered question.

        Raises:
            UnansweredQuestion: the question is new.
            EvaluationError: the question has no decision, or the review has asked too many questions.
        """
        answer = self._known_answers.get(question)
        if answer is None:
            if len(self._known_answers) >= self._max_questions:
                raise self._note_unanswered(
                    f"a review may ask {self._max_questions} questions, and this review asks more"
                )
            raise UnansweredQuestion(question)
        if isinstance(answer, str):
            raise self._note_unanswered(answer)
        return answer

    def _note_unanswered(self, because: str) -> EvaluationError:
        self.unanswered[because] = None
        return EvaluationError(f"authorizer: {because}")


NO_DECISIONS: Authorizer = ListedAuthorizer(())
"""An Authorizer without any decision: every check fails."""


class AuthorizerValue(Struct, frozen=True):
    """The variable `authorizer`, about one user."""

    cel_type: ClassVar[Type] = AUTHORIZER

    authorizer: Authorizer
    question: AuthorizationQuestion

    def with_question_fields(self, **parts: str) -> AuthorizationQuestion:
        return structs.replace(self.question, **parts)


class PathCheck(AuthorizerValue, frozen=True):
    """A question about a path of the API server."""

    cel_type: ClassVar[Type] = PATH_CHECK


class GroupCheck(AuthorizerValue, frozen=True):
    """A question about an API group."""

    cel_type: ClassVar[Type] = GROUP_CHECK


class ResourceCheck(AuthorizerValue, frozen=True):
    """A question about a resource."""

    cel_type: ClassVar[Type] = RESOURCE_CHECK


def authorizer_of(user: str, authorizer: Authorizer) -> AuthorizerValue:
    return AuthorizerValue(authorizer, AuthorizationQuestion(user=user))


def check_of_request_resource(user: str, authorizer: Authorizer, **resource: str) -> ResourceCheck:
    return ResourceCheck(authorizer, AuthorizationQuestion(user=user, **resource))  # type: ignore[arg-type]  # all are texts


def authorizer_of_service_account(value: AuthorizerValue, namespace: str, name: str) -> AuthorizerValue:
    if dns1123_subdomain_errors(name):
        raise EvaluationError("Invalid service account name")
    if dns1123_label_errors(namespace):
        raise EvaluationError("Invalid service account namespace")
    user = f"system:serviceaccount:{namespace}:{name}"
    return AuthorizerValue(value.authorizer, AuthorizationQuestion(user=user, is_service_account=True))


def check_of_path(value: AuthorizerValue, text: str) -> PathCheck:
    if not text.strip():
        raise EvaluationError("path must not be empty")
    return PathCheck(value.authorizer, value.with_question_fields(path=text))


def check_of_group(value: AuthorizerValue, name: str) -> GroupCheck:
    return GroupCheck(value.authorizer, value.with_question_fields(group=name))


def check_of_resource(value: GroupCheck, name: str) -> ResourceCheck:
    if not name.strip():
        raise EvaluationError("resource must not be empty")
    return ResourceCheck(value.authorizer, value.with_question_fields(resource=name))


def ask_authorizer(value: AuthorizerValue, verb: str) -> AuthorizationDecision:
    return value.authorizer.decide(value.with_question_fields(verb=verb))


def _create_selector_function(part: str) -> Callable[[ResourceCheck, str], ResourceCheck]:
    return lambda value, text: ResourceCheck(value.authorizer, value.with_question_fields(**{part: text}))


def _selector_cost(_: Any, __: ResourceCheck, selector: str) -> int:
    # selectorCostEstimate counts a list, a walk over the text, and a structure with a list for every second character
    length = costs.counted_size(selector)
    return costs.LIST + ceil(length * costs.STRING) + ceil(ceil(length * 0.5) * 50.0)


def _method_overload(
    target: Type, name: str, id_: str, result: Type, implementation: Callable[..., Any], *, since: Version = (1, 27)
) -> Overload:
    arguments = 2 if name == "serviceAccount" else int(target is not DECISION)
    cost = CHECK_COST if name == "check" else 1
    return Overload(
        name,
        id_,
        (target, *[STRING] * arguments),
        result,
        implementation,
        member=True,
        since=since,
        cost=lambda *_: cost,
    )


def _selector_overload(name: str, part: str) -> Overload:
    return Overload(
        name,
        f"authorizer_{name.lower()}",
        (RESOURCE_CHECK, STRING),
        RESOURCE_CHECK,
        _create_selector_function(part),
        member=True,
        since=(1, 31),
        cost=_selector_cost,
    )


FUNCTIONS = (
    _method_overload(AUTHORIZER, "path", "authorizer_path", PATH_CHECK, check_of_path),
    _method_overload(AUTHORIZER, "group", "authorizer_group", GROUP_CHECK, check_of_group),
    _method_overload(
        AUTHORIZER, "serviceAccount", "authorizer_serviceaccount", AUTHORIZER, authorizer_of_service_account
    ),
    _method_overload(GROUP_CHECK, "resource", "groupcheck_resource", RESOURCE_CHECK, check_of_resource),
    *(
        _method_overload(RESOURCE_CHECK, part, f"resourcecheck_{part}", RESOURCE_CHECK, _create_selector_function(part))
        for part in ("subresource", "namespace", "name")
    ),
    _method_overload(PATH_CHECK, "check", "pathcheck_check", DECISION, ask_authorizer),
    _method_overload(RESOURCE_CHECK, "check", "resourcecheck_check", DECISION, ask_authorizer),
    _method_overload(
        DECISION, "errored", "decision_errored", BOOL, lambda decision: decision.error is not None, since=(1, 28)
    ),
    _method_overload(DECISION, "error", "decision_error", STRING, lambda decision: decision.error or "", since=(1, 28)),
    _method_overload(DECISION, "allowed", "decision_allowed", BOOL, lambda decision: decision.allowed),
    _method_overload(DECISION, "reason", "decision_reason", STRING, lambda decision: decision.reason),
    _selector_overload("fieldSelector", "field_selector"),
    _selector_overload("labelSelector", "label_selector"),
)
