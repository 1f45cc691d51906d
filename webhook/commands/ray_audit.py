"""The option `--ray`: audits on the machines of a Ray cluster. Imports modules for Ray only with --ray."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from webhook.commands.audit_files import Index, Results
from webhook.commands.audit_index import AuditIndex, Indexer
from webhook.commands.audit_part import PartOptions, PartResult
from webhook.commands.progress import Interrupts
from webhook.errors import ConfigurationError
from webhook.input import object_store
from webhook.input.document_stream import DocumentStream
from webhook.input.documents import Listing
from webhook.report.finding import Finding
from webhook.yamltext import yamlfile

if TYPE_CHECKING:
    from webhook.assembly import ReviewAssembly
    from webhook.commands.ray_cluster import RayCluster

RayAddress: TypeAlias = Annotated[
    str,
    typer.Option(
        "--ray",
        metavar="ADDRESS",
        help="Work on a Ray cluster: `auto`, HOST:PORT or ray://HOST:PORT. `local` starts Ray on this machine. Files "
        "may be addresses such as s3://bucket/folder. Needs 'claimgate[ray]' on all machines.",
    ),
]
Jobs: TypeAlias = Annotated[
    int | None,
    typer.Option(
        "--jobs",
        "-j",
        metavar="N",
        min=1,
        help="Number of processes. [default: 1, with --ray one for each processor]",
        show_default=False,
    ),
]


def connect_to_ray_if_given(ray: str, jobs: int | None) -> AbstractContextManager[RayCluster | None]:
    """Return a connection to the cluster of --ray; None if the option is not given."""
    if not ray:
        return nullcontext()
    from webhook.commands.ray_cluster import connect_to_ray

    return connect_to_ray(ray, jobs)


def listing_function_for(ray: str) -> Listing:
    """Return the function that lists the named files. With --ray, names may be addresses of object stores."""
    return object_store.list_manifest_files if ray else yamlfile.listing


def refuse_other_options(ray: str, *, named: Sequence[str], **others: object) -> None:
    """With --ray, refuse standard input and options that need the files on this machine.

    `others` has the values of these options, by flag.

    Raises:
        ConfigurationError: standard input or one of these options was given.
    """
    if not ray:
        return
    if "-" in named:
        raise ConfigurationError("--ray: standard input cannot be read by other machines; name files or folders")
    for name, value in others.items():
        if value:
            flag = f"--{name.replace('_', '-')}"
            raise ConfigurationError(f"--ray: cannot be used together with {flag}; leave one of them out")


def create_ray_indexer(cluster: RayCluster, stream: DocumentStream) -> Index:
    """Return a function that finds the objects that policies look up, on the machines of the cluster."""
    from webhook.commands.ray_cluster import IndexWork

    def index(indexer: Indexer) -> AuditIndex:
        whole = AuditIndex()
        for each in cluster.results_in_order(IndexWork(indexer), stream.input_files()):
            whole.add(each)
        return whole

    return index


def create_ray_auditor(
    cluster: RayCluster, assembled: ReviewAssembly, part_options: PartOptions, stream: DocumentStream
) -> Results:
    """Return a function that audits the files of a stream on the machines of the cluster."""
    from webhook.commands.ray_cluster import AuditWork

    work = AuditWork(assembled, part_options)

    def results(_stop: Interrupts) -> Iterator[tuple[PartResult, Iterable[Finding]]]:
        return ((each, each.findings) for each in cluster.results_in_order(work, stream.input_files()))

    return results
