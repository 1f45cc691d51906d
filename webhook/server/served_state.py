"""Evaluates reviews with the policies, the options and the view of the cluster of this moment.

Each review reads everything that it needs, so a reload is one assignment. An evaluation encodes and counts its answer,
and returns the fields of its log line, on the event loop or in a worker process.
"""

from __future__ import annotations

import pickle
import socket
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import Final, TypeAlias

from msgspec import structs

from webhook import assembly
from webhook.admission.decode import decode_review_bytes
from webhook.admission.enforce import fit_warnings_to_api_server_limits, verdict_of_decisions
from webhook.admission.respond import encode_response
from webhook.admission.review import NotEvaluated, answer_request, answer_unevaluated_request
from webhook.apimachinery.attributes import Attributes, GroupVersionKind, Phase
from webhook.cel.library.authorizer import (
    AuthorizationDecision,
    AuthorizationQuestion,
    Authorizer,
    PausingAuthorizer,
    UnansweredQuestion,
)
from webhook.cluster import Cluster
from webhook.cluster.connection import Connection
from webhook.cluster.failure_log import FailureLog
from webhook.cluster.files import FilesCluster
from webhook.cluster.layered import ClusterWithAssumedNamespaces, LayeredCluster
from webhook.cluster.watch import WatchedCluster
from webhook.deadline import Deadline
from webhook.errors import BudgetExceeded, CallError, describe_fault
from webhook.evaluation.review_options import ReviewOptions
from webhook.input.reload import ReloadableValue, create_file_state_function
from webhook.live_policies.compile import Compiler
from webhook.live_policies.live_policy_set import LivePolicySet
from webhook.live_policies.objects import watch_stored_policies
from webhook.logs.structured import Log
from webhook.manifests.configuration import NO_FILE, ConfigurationFile
from webhook.policy.configured_rules import apply_configuration_to_policies
from webhook.policy.load import load_policy_set
from webhook.policy.policy_set import PolicySet
from webhook.rules.decisions import Verdict
from webhook.server.access_reviews import MOST_QUESTIONS, check_authorizer_enabled
from webhook.server.counters import Counters
from webhook.server.review_log import log_fields_of_review
from webhook.server.warning_events import WARNED, describe_warned_review
from webhook.server.worker_lane import OUT_OF_MEMORY, WorkerResult, question_as_json, receive
from webhook.settings.configured import settings_from_changed_file
from webhook.settings.shared import ReportSettings
from webhook.yamltext.yamlfile import discover

_NO_MEMORY: Final = (MemoryError, SystemError)
"""The exceptions of C code without memory. A tuple in an `except` clause would need memory."""

Known: TypeAlias = dict[AuthorizationQuestion, AuthorizationDecision | str]
"""The answers to the questions of one review, or the reasons why there are none."""
NOTHING_KNOWN: Final[Known] = {}


def instructions_for_worker(phase: Phase, end: float, known_answers: Known) -> bytes:
    """Return how a worker evaluates a body; `end` is the end of the evaluation on the monotonic clock."""
    return pickle.dumps((phase, end, known_answers))


class ReviewEvaluation:
    """Evaluates reviews with the policies and the view that a reviewer has at that moment."""

    def __init__(self, reviewer: ServedState, *, logs_denials: bool = False, notes_warnings: bool = False) -> None:
        """With `notes_warnings`, the results of a review with warnings have the data for an Event."""
        self._reviewer = reviewer
        self._logs_denials = logs_denials
        self._notes_warnings = notes_warnings

    def evaluate_and_encode(
        self, attributes: Attributes, phase: Phase, deadline: Deadline, counters: Counters, known_answers: Known
    ) -> WorkerResult:
        """Evaluate a review, encode its verdict, and count it. Raise the errors of the evaluation."""
        started = perf_counter()
        answers = PausingAuthorizer(known_answers, MOST_QUESTIONS)
        verdict = self._reviewer.review(attributes, phase, deadline, answers)
        if answers.unanswered and verdict.allowed:
            verdict = structs.replace(
                verdict,
                warnings=fit_warnings_to_api_server_limits(
                    (*verdict.warnings, _warning_of_ignored_failure(answers.unanswered))
                ),
            )
        return self._encode_and_count(attributes, phase, verdict, started, counters)

    def answer_unevaluated(
        self, attributes: Attributes, phase: Phase, reason: NotEvaluated, started: float, counters: Counters
    ) -> WorkerResult:
        """Answer a review by the policies' failurePolicy; `started` is a moment of the performance counter."""
        verdict = self._reviewer.answer_unevaluated(attributes, phase, reason)
        return self._encode_and_count(attributes, phase, verdict, started, counters)

    def _encode_and_count(
        self, attributes: Attributes, phase: Phase, verdict: Verdict, started: float, counters: Counters
    ) -> WorkerResult:
        answer = encode_response(attributes.uid, verdict, phase, attributes.operation)
        elapsed_s = perf_counter() - started
        counters.reviewed(attributes, phase, verdict, elapsed_s)
        fields = log_fields_of_review(attributes, phase, verdict, elapsed_s, with_denial=self._logs_denials)
        if self._notes_warnings and verdict.warnings and (warned := describe_warned_review(attributes, verdict)):
            fields[WARNED] = warned
        return WorkerResult(outcome="answered", body=answer, fields=fields, seconds=elapsed_s)

    def evaluate_in_worker(self, channel: socket.socket) -> bytes:
        """Evaluate a job from a socket, in a worker process; return the packed result with its counts."""
        counters, deadline, attributes = Counters(), Deadline(), None
        try:
            instructions, body = receive(channel)
            phase, end, known_answers = pickle.loads(instructions)  # noqa: S301 - the server wrote it
            deadline = Deadline(end, BudgetExceeded)
            attributes = decode_review_bytes(body, deadline)
            try:
                return self.evaluate_and_encode(attributes, phase, deadline, counters, known_answers).packed(counters)
            except UnansweredQuestion as open_question:
                result = WorkerResult(
                    outcome="question", fields=question_as_json(open_question.question, attributes.user_info)
                )
        except CallError as error:
            fields: dict[str, object] = {"code": error.code, "reason": error.reason, "message": error.message}
            result = WorkerResult(outcome="refused", fields=fields)
        except _NO_MEMORY:
            return OUT_OF_MEMORY
        except Exception as error:  # noqa: BLE001 - our own bug: the server logs it and answers HTTP 500
            if isinstance(error, BudgetExceeded) and (attributes is None or deadline.is_over):
                result = WorkerResult(outcome="out of time", fields={})  # also if decoding would end too late
            else:
                result = WorkerResult(outcome="failed", fields=describe_fault(error))
        return result.packed(counters)


def _warning_of_ignored_failure(reasons: Iterable[str]) -> str:
    # for policies with failurePolicy Ignore that asked the authorizer
    return f"a policy that asks what users may do was not evaluated and let the request pass: {'; '.join(reasons)}"


@dataclass(frozen=True, slots=True)
class ServedState:
    """The policies, the context and the view of the cluster. Each review reads the current values.

    `policies` are compiled under the last good `configuration`. `options` are the options of each review.
    """

    policies: ReloadableValue[PolicySet]
    context: ReloadableValue[FilesCluster]
    watched: WatchedCluster | None
    settings: ReportSettings
    connection: Connection | None = None
    configuration: ReloadableValue[ConfigurationFile] = field(
        default_factory=lambda: ReloadableValue(lambda: NO_FILE, lambda: None)
    )
    options: ReviewOptions = field(init=False)

    def __post_init__(self) -> None:
        options = assembly.review_options_of_settings(self.settings, self.policies.current)
        object.__setattr__(self, "options", options)

    @classmethod
    def make(
        cls,
        chosen: ReportSettings,
        connection: Connection | None,
        log: Log,
        *,
        may_ask: bool = False,
        live_policies: bool = False,
        view_memory: int | None = None,
    ) -> ServedState:
        """Load policies and context for the first time, and start to watch the cluster.

        Args:
            chosen: policies, context and how they are read.
            connection: to the cluster to watch; None looks up objects only in files.
            log: where failures of watches go.
            may_ask: policies may ask `authorizer`.
            live_policies: stored policies of the cluster are also evaluated.
            view_memory: the most bytes of objects in the view; None means no bound.

        Raises:
            ConfigurationError: policies or context that cannot be used.
            InputError: context that cannot be read.
        """
        folders = assembly.policy_folders_of_settings(chosen)
        compile_options = assembly.create_compile_options(chosen)
        loaded: list[PolicySet] = []

        def read_configuration() -> ConfigurationFile:
            file = settings_from_changed_file(chosen).configuration
            for each in loaded:  # refuses unknown rules, like load_policies at the start
                apply_configuration_to_policies(each, file)
            return file

        def load_policies() -> PolicySet:
            unconfigured = load_policy_set(folders, compile_options)
            configured = apply_configuration_to_policies(unconfigured, configuration.current)
            loaded[:] = [unconfigured]
            return check_authorizer_enabled(configured, may_ask=may_ask)

        configuration = ReloadableValue(
            read_configuration,
            create_file_state_function(lambda: discover(filter(None, [chosen.configuration.path]))),
        )
        state_of_folders = create_file_state_function(lambda: discover(folders))
        policies = ReloadableValue(
            load_policies,
            lambda: (state_of_folders(), configuration.reloads),
            PolicySet.compile_ahead_of_requests,
        )
        watched: WatchedCluster | None = None
        if connection is not None:

            def policies_of_kind(gvk: GroupVersionKind) -> Sequence[str]:
                return policies.current.names_of_policies_that_look_up(gvk)  # stored policies too

            failure_log = FailureLog(log, policies_of_kind)
            with failure_log.gather():
                if live_policies:
                    stored = watch_stored_policies(connection, log, failure_log)
                    policies = LivePolicySet(policies, stored, connection, Compiler(compile_options, may_ask=may_ask))
                interests = policies.current.interests()
                watched = WatchedCluster.start(connection, interests, log, view_memory, failure_log)
        context = ReloadableValue(
            lambda: assembly.cluster_of_context_files(chosen, policies.current),
            create_file_state_function(lambda: discover(chosen.context)),
        )
        return cls(policies, context, watched, chosen, connection, configuration)

    def cluster(self) -> Cluster:
        """Return the view of the cluster: context files first, then the live cluster."""
        context = self.context.current
        return LayeredCluster(context, self.watched.cluster) if self.watched else ClusterWithAssumedNamespaces(context)

    def version(self) -> object | None:
        """Return a value that changes with the state that verdicts depend on; None while the state changes."""
        view = self.watched.cluster.version() if self.watched else ()
        return None if view is None else (self.policies.current, self.context.current, view)

    @property
    def view_bytes(self) -> int:
        """Return the bytes of objects that the view of the cluster holds now."""
        return self.watched.cluster.memory.bytes if self.watched else 0

    def review(
        self, attributes: Attributes, phase: Phase, deadline: Deadline, authorizer: Authorizer | None = None
    ) -> Verdict:
        """Evaluate one review with the current policies and view.

        A request that creates or updates a policy of the cluster is first checked for mistakes in the policy.
        """
        if isinstance(self.policies, LivePolicySet) and phase is Phase.VALIDATE:
            refused = self.policies.explain_refusal(attributes, deadline)
            if refused is not None:
                return verdict_of_decisions((refused,), attributes)
        return answer_request(
            attributes,
            self.policies.current,
            self.cluster(),
            phase=phase,
            deadline=deadline,
            authorizer=authorizer,
            options=self.options,
        )

    def answer_unevaluated(self, attributes: Attributes, phase: Phase, why: NotEvaluated) -> Verdict:
        """Return the verdict on a request with an interrupted evaluation."""
        strictest = self.options.enforcement_action
        return answer_unevaluated_request(
            attributes, self.policies.current, self.cluster(), phase=phase, why=why, most=strictest
        )
