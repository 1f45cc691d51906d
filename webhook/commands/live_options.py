"""The flags of an audit of a live cluster. Modules that read a cluster are imported only for --live."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer
from msgspec import Struct
from msgspec.structs import replace

from webhook.cluster.interest import Interest
from webhook.errors import ConfigurationError
from webhook.policy.policy_set import PolicySet
from webhook.report.formats import PublishedFormat, RequiredContents
from webhook.settings.shared import Settings

if TYPE_CHECKING:
    from webhook.commands.audit_live import LiveCluster, LiveScope
    from webhook.commands.publishing import ReportPublisher

Live: TypeAlias = Annotated[bool, typer.Option("--live", help="Audit the cluster of kubectl, or of this pod.")]
Kubeconfig: TypeAlias = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Audit the cluster of this kubeconfig; implies --live.")
]
KubeContext: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--kube-context",
        metavar="NAME",
        help="Use this context of the kubeconfig.",
    ),
]
Namespaces: TypeAlias = Annotated[
    list[str] | None,
    typer.Option("--namespace", "-n", metavar="NAME", help="With --live: only objects of this namespace; repeatable."),
]
Selector: TypeAlias = Annotated[
    str, typer.Option("--selector", "-l", metavar="LABELS", help="With --live: only objects that match this selector.")
]
ShardOf: TypeAlias = Annotated[
    str,
    typer.Option("--shard", metavar="I/N", help="With --live: part I of N, numbered from 0."),
]
Publish: TypeAlias = Annotated[
    PublishedFormat | None,
    typer.Option(help="With --live: write a report for each object into the cluster."),
]
FailsOnly: TypeAlias = Annotated[
    bool, typer.Option("--fails-only", help="With --publish: no report for objects that pass every policy.")
]


class LiveFlags(Struct, frozen=True, kw_only=True):
    """The values of the flags."""

    live: bool
    kubeconfig: Path | None
    kube_context: str | None
    namespaces: Sequence[str] | None
    selector: str
    shard: str
    publish: PublishedFormat | None
    fails_only: bool

    @property
    def is_live(self) -> bool:
        """Return whether a cluster is audited instead of files."""
        return self.live or self.kubeconfig is not None or self.kube_context is not None

    def contents_with_published(self, reported: RequiredContents) -> RequiredContents:
        """Return the data that the audit must compute, also for published reports."""
        return replace(reported, passes=reported.passes or (self.publish is not None and not self.fails_only))

    def check_flag_combinations(self, path: Sequence[str] | None, settings: Settings) -> None:
        """Refuse flags that do not go together.

        Raises:
            ConfigurationError: flags exclude each other, or a flag is missing.
        """
        if not self.is_live:
            values = {"--namespace": self.namespaces, "--selector": self.selector, "--shard": self.shard}
            values["--publish"] = self.publish
            if named := [flag for flag, value in values.items() if value]:
                raise ConfigurationError(f"{named[0]}: needs a cluster: add --live, or leave {named[0]} out")
            if not path:
                raise ConfigurationError("audit: name files or folders, - for stdin, or --live for a cluster")
        elif path:
            raise ConfigurationError("audit: --live audits the cluster: leave out files and folders")
        elif settings.names_given_by_flags & {"context", "context_is_whole"}:
            raise ConfigurationError("audit: --live has the whole cluster: leave out --context and --context-is-whole")
        if self.fails_only and self.publish is None:
            raise ConfigurationError("--fails-only: is about the reports of --publish: add --publish")

    def publisher(self, cluster: LiveCluster, read: Collection[tuple[str, str]]) -> ReportPublisher | None:
        """Return the writer of reports into the cluster; None without --publish.

        `read` lists the kinds that were read completely, and grows until the end of the audit. Stale reports about
        other kinds are not removed.

        Raises:
            ConfigurationError: the kinds of reports are not served, or cannot be read.
        """
        if self.publish is None:
            return None
        from webhook.commands.publishing import APIS, ReportPublisher

        api = APIS[self.publish]
        return ReportPublisher(cluster.connection, api, self.scope(), fails_only=self.fails_only, read=read)

    def scope(self) -> LiveScope:
        """Return the scope of objects to audit.

        Raises:
            ConfigurationError: the value of --shard is invalid.
        """
        from webhook.commands.audit_live import LiveScope, Shard

        shard = Shard.parse(self.shard)
        return LiveScope(namespaces=tuple(self.namespaces or ()), selector=self.selector, shard=shard)


@contextmanager
def open_live_cluster(
    policies: PolicySet,
    kubeconfig: Path | None,
    kube_context: str | None,
    *,
    of_audits: bool = False,
    others: Sequence[Interest] = (),
) -> Iterator[LiveCluster]:
    """Yield a live cluster with a view of the objects that policies look up, and of `others`; for audits, also of the
    objects that advice looks up.

    Raises:
        ConfigurationError: no server or credentials are configured.
    """
    from webhook.cluster.connection import connect_to_cluster
    from webhook.cluster.layered import ClusterWithAssumedNamespaces
    from webhook.cluster.watch import WatchedCluster
    from webhook.commands.audit_live import LiveCluster
    from webhook.logs.structured import Log

    connection = connect_to_cluster(kubeconfig, kube_context)
    view = WatchedCluster.start(connection, (*policies.interests(of_audits=of_audits), *others), Log(level="error"))
    try:
        yield LiveCluster(connection, ClusterWithAssumedNamespaces(view.cluster))
    finally:
        view.cluster.close()
