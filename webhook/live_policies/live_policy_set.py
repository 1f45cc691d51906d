"""The policies of files and the policies that the cluster stores, as one set that follows both.

If files cannot be used, their last good policies stay in service, and changed stored objects still apply. A stored
object that does not compile removes no other policy (live_policies/compile.py). The set is compiled in a thread and
swapped as a whole.

A param in a file that names an unknown rule is refused when the file is loaded. A param of the cluster exists already:
its mistake is logged once for each change, counted, and named in /readyz?verbose.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Final

from webhook.apimachinery.attributes import Attributes, Operation
from webhook.apimachinery.paths import path_as_text
from webhook.cluster import Cluster
from webhook.cluster.lookup import namespace_and_name
from webhook.deadline import Deadline
from webhook.errors import LookupFailed
from webhook.input.reload import ReloadableValue
from webhook.live_policies.combine import LivePolicies, combine_file_and_stored_policies
from webhook.live_policies.compile import MOST_S, CompiledObject, Compiler
from webhook.live_policies.conditions import status_of_all_objects
from webhook.live_policies.exceptions import MANAGER, decision_about_stored_object, refusal_of_exception
from webhook.live_policies.objects import StoredPolicies, StoredPolicy
from webhook.live_policies.status_writer import ObjectApplier, StatusWriter
from webhook.logs.structured import Log
from webhook.manifests.claimgate_kinds import GROUP, KINDS, POLICY_EXCEPTION
from webhook.manifests.leave_alone import current_day
from webhook.policy.configured_rules import param_rules_of_policies
from webhook.policy.param_rules import ParamRuleChecker
from webhook.policy.policy_set import PolicySet
from webhook.rules.decisions import Decision, ValidationAction

STATUS_S: Final = 1.0
"""Seconds between two comparisons of the stored status with the intended status."""


class LivePolicySet(ReloadableValue[PolicySet]):
    """The policies of files and of the cluster as one set; `live` also has the outcome for each stored object."""

    def __init__(
        self, files: ReloadableValue[PolicySet], stored: StoredPolicies, connection: ObjectApplier, compiler: Compiler
    ) -> None:
        """Compile the stored policies. From now on, this set polls the files of `files`.

        The server is not ready until the stored policies could be listed.
        """
        self._files = files
        self._stored = stored
        self._compiler = compiler
        self._writer = StatusWriter(connection, MANAGER)
        self._compiled: tuple[CompiledObject, ...] = ()
        self._revision: object = None
        self._digests: object = None
        self._is_listed = False
        self.live = LivePolicies(files.current)
        super().__init__(lambda: self.live.policies, lambda: None)
        self._combine_if_changed(is_anew=False)

    def poll(self) -> bool:
        """Combine the policies again if files or stored objects changed.

        Returns:
            Whether new files or objects were tried, or an error of the files began or ended.
        """
        tried = self._files.poll()
        self.error = self._files.error
        changed = self._combine_if_changed(is_anew=tried and not self.error)
        return tried or changed

    def _combine_if_changed(self, *, is_anew: bool) -> bool:
        if self._compile_changed_objects() or is_anew:
            combined = combine_file_and_stored_policies(self._files.current, self._compiled, is_server=True)
            combined.policies.compile_ahead_of_requests()
            self.live, self.current = combined, combined.policies
            self.reloads += 1
            return True
        return False

    def _compile_changed_objects(self) -> bool:
        # when listing fails, the last compiled objects stay
        revision = self._stored.revision()  # read before the objects, to notice a change in the meantime
        if revision == self._revision:
            return False
        try:
            stored = self._stored.list_oldest_first()
        except LookupFailed:
            return False
        self._is_listed, self._revision = True, revision
        failing = {each.stored.uid for each in self._compiled if each.errors}
        digests = [_parts_that_decide(each, is_failing=each.uid in failing) for each in stored]
        if digests == self._digests:  # the change was in other parts of the status
            return False
        self._compiled = self._compiler.compile(stored)
        failing = {each.stored.uid for each in self._compiled if each.errors}
        self._digests = [_parts_that_decide(each, is_failing=each.uid in failing) for each in stored]
        return True

    def explain_refusal(self, attributes: Attributes, deadline: Deadline) -> Decision | None:
        """Return the denial of a stored policy, binding or exception with errors in its new spec, or a warning.

        The warning is about an exception without an effect. An exception that has expired when it is created is denied.
        The result is None for every other request.

        Raises:
            Exception: the error of the deadline, if there is no time to compile the object.
        """
        new, old = attributes.object, attributes.old_object
        if attributes.kind.group != GROUP or not isinstance(new, dict):
            return None
        if attributes.operation not in (Operation.CREATE, Operation.UPDATE) or attributes.sub_resource:
            return None
        if attributes.kind.kind == POLICY_EXCEPTION:
            deadline.check_clock_before_slow_call(MOST_S)
            return refusal_of_exception(attributes, self.current, current_day())
        if attributes.kind.kind not in KINDS:
            return None
        if old is not None and old.get("spec") == new.get("spec"):  # a broken object may still be labelled
            return None
        deadline.check_clock_before_slow_call(MOST_S)
        errors = self._compiler.errors_of_object(StoredPolicy(new))
        return decision_about_stored_object(errors, ValidationAction.DENY) if errors else None

    def explain_missing_policy_list(self) -> str:
        """Return why the stored policies are not known yet; "" if they are known."""
        return "" if self._is_listed else self._stored.explain_unknown_objects()

    def describe_problems(self) -> str:
        """Return the objects with errors, the kinds that are not installed, and why status cannot be written."""
        failing = self.live.failing_object_names()
        lines = [f"with errors: {', '.join(failing)}"] if failing else []
        lines += [f"status cannot be written: {self._writer.error}"] if self._writer.error else []
        return "\n".join([*lines, *filter(None, [self._stored.explain_kinds_not_served()])])

    async def write_status(self) -> None:
        """Write the status of each stored policy for ever, in a thread."""
        while True:
            await asyncio.sleep(STATUS_S)
            await asyncio.to_thread(self.write_missing_conditions)

    def write_missing_conditions(self) -> None:
        """Write the conditions that the stored objects do not have yet; skip objects that changed since compilation."""
        try:
            stored = {each.uid: each for each in self._stored.list_oldest_first()}
        except LookupFailed:
            return
        statuses = (
            (stored.get(each.uid), each, conditions, last)
            for each, conditions, last in status_of_all_objects(self.live)
        )
        self._writer.write(
            (now, conditions, last)
            for now, then, conditions, last in statuses
            if now is not None and now.generation == then.generation
        )


def _parts_that_decide(stored: StoredPolicy, *, is_failing: bool) -> object:
    # the last compiled generation is evaluated only for an object with errors
    last = stored.last_compiled if is_failing else None
    return stored.uid, stored.generation, stored.digest(), stored.registration, last and last.digest()


PARAMS_S: Final = 5.0
"""Seconds between two calls of `find_new_mistakes`; a log line about a ConfigMap may be late by this time."""
MOST_MISTAKES: Final = 20
"""The maximum number of reported mistakes. A ConfigMap may have a megabyte of mistakes, and each suggestion takes
milliseconds.
"""


class LiveParamsChecker:
    """Finds mistakes in the params that bindings name or select in the current view of the cluster.

    `mistakes` has the mistakes that the last search found.
    """

    def __init__(self, policies: Callable[[], PolicySet], cluster: Callable[[], Cluster], log: Log) -> None:
        self._policies = policies
        self._cluster = cluster
        self._log = log
        self.mistakes: Sequence[str] = ()
        self._seen: object = None

    async def find_new_mistakes(self) -> int:
        """Search in a thread if policies or params have changed. Log all mistakes if some are new. Return the number of
        new mistakes.
        """
        if not self.has_changed():
            return 0
        before, self.mistakes = self.mistakes, await asyncio.to_thread(self._find_mistakes)
        added = set(self.mistakes).difference(before)
        if added:
            meanwhile = "answered; keys and rules that do not exist have no effect"
            self._log.warning("mistakes in params", mistakes="; ".join(self.mistakes), reviews=meanwhile)
        return len(added)

    def has_changed(self) -> bool:
        policies, cluster = self._policies(), self._cluster()
        seen = policies, {kind: cluster.revision(kind) for kind in param_rules_of_policies(policies).param_kinds()}
        before, self._seen = self._seen, seen
        return seen != before

    def _find_mistakes(self) -> Sequence[str]:
        checker = param_rules_of_policies(self._policies())
        return tuple(islice(_distinct_mistakes_in_params(checker, self._cluster()), MOST_MISTAKES))


def _distinct_mistakes_in_params(rules: ParamRuleChecker, cluster: Cluster) -> Iterator[str]:
    # once for each param, even if several policies use it
    seen: set[int] = set()
    for kind, param in rules.params_in_cluster(cluster):
        if id(param) not in seen:
            seen.add(id(param))
            place = "/".join(filter(None, namespace_and_name(param)))
            for path, text in rules.mistakes_if_object_is_param(param):
                yield f"{kind.kind} {place}: {path_as_text(path)}: {text}"
