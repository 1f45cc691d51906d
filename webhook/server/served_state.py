"""The policies, context and view of the cluster that a server evaluates with.

Each review reads everything that it needs, so a reload is one assignment.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from webhook import assembly
from webhook.admission.enforce import verdict_of_decisions
from webhook.admission.interrupt import NotEvaluated, answer_unevaluated_request
from webhook.admission.review import answer_request
from webhook.apimachinery.attributes import Attributes, GroupVersionKind, Phase
from webhook.cel.library.authorizer import Authorizer
from webhook.cluster import Cluster
from webhook.cluster.assumed_namespaces import ClusterWithAssumedNamespaces
from webhook.cluster.connection import Connection
from webhook.cluster.failure_log import FailureLog
from webhook.cluster.files import FilesCluster
from webhook.cluster.layered import LayeredCluster
from webhook.cluster.live import WatchedCluster
from webhook.deadline import Deadline
from webhook.evaluation.review_options import ReviewOptions
from webhook.live_policies.compile import Compiler
from webhook.live_policies.objects import watch_stored_policies
from webhook.logs.structured import Log
from webhook.manifests.configuration_file import NO_FILE, ConfigurationFile
from webhook.policy.configured_rules import apply_configuration_to_policies
from webhook.policy.load import load_policy_set
from webhook.policy.policy_set import PolicySet
from webhook.rules.decisions import Verdict
from webhook.server.access_reviews import check_authorizer_enabled
from webhook.server.live_policy_set import LivePolicySet
from webhook.server.reload import ReloadableValue, create_file_state_function
from webhook.settings.configured import settings_from_changed_file
from webhook.settings.shared import ReportSettings
from webhook.yamltext.yamlfile import discover


@dataclass(frozen=True, slots=True)
class ServedState:
    """The policies, context and view of the cluster for reviews; each review reads the current ones.

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
            connection: to the cluster to watch; None if policies look up objects only in files.
            log: where failures of watches go.
            may_ask: whether policies may ask `authorizer`.
            live_policies: whether the policies that the cluster stores are also evaluated.
            view_memory: bytes of objects in the view; None means no bound.

        Raises:
            ConfigurationError: policies or context that cannot be used.
            InputError: context that cannot be read.
        """
        folders = assembly.policy_folders_of_settings(chosen)
        how = assembly.create_compile_options(chosen)
        loaded: list[PolicySet] = []

        def read_configuration() -> ConfigurationFile:
            file = settings_from_changed_file(chosen).configuration
            for each in loaded:  # refuses rules that do not exist; the first time the policies do that
                apply_configuration_to_policies(each, file)
            return file

        def load_policies() -> PolicySet:
            unconfigured = load_policy_set(folders, how)
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
                return policies.current.names_of_policies_that_look_up(gvk)  # of the stored policies, too

            failure_log = FailureLog(log, policies_of_kind)
            with failure_log.gather():
                if live_policies:
                    stored = watch_stored_policies(connection, log, failure_log)
                    policies = LivePolicySet(policies, stored, connection, Compiler(how, may_ask=may_ask))
                interests = policies.current.interests()
                watched = WatchedCluster.start(connection, interests, log, view_memory, failure_log)
        context = ReloadableValue(
            lambda: assembly.cluster_of_context_files(chosen, policies.current),
            create_file_state_function(lambda: discover(chosen.context)),
        )
        return cls(policies, context, watched, chosen, connection, configuration)

    def cluster(self) -> Cluster:
        """Return the view of the cluster: objects of context files first, then those of the live cluster."""
        context = self.context.current
        return LayeredCluster(context, self.watched.cluster) if self.watched else ClusterWithAssumedNamespaces(context)

    def version(self) -> object | None:
        """Return what says by `==` whether verdicts still depend on the same; None while that changes."""
        view = self.watched.cluster.version() if self.watched else ()
        return None if view is None else (self.policies.current, self.context.current, view)

    @property
    def view_bytes(self) -> int:
        """Return the bytes of objects that the view of the cluster holds now."""
        return self.watched.cluster.memory.bytes if self.watched else 0

    def review(
        self, attributes: Attributes, phase: Phase, deadline: Deadline, authorizer: Authorizer | None = None
    ) -> Verdict:
        """Evaluate one review with the current policies and view; one of a stored policy says what is wrong with it."""
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
        most = self.options.enforcement_action
        return answer_unevaluated_request(
            attributes, self.policies.current, self.cluster(), phase=phase, why=why, most=most
        )
