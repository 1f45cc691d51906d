"""`claimgate certs`: issues, shows, rotates and injects the webhook's certificates. The folder certs/ does the work."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

import typer

from certs import CertificateError
from webhook.errors import ConfigurationError
from webhook.text.terminal import one_line
from webhook.text.wording import counted

if TYPE_CHECKING:
    from certs.issue import Facts
    from certs.store import Store

app = typer.Typer(no_args_is_help=True, add_completion=False, help="Issue, show, rotate and inject certificates.")

Dir: TypeAlias = Annotated[
    Path | None, typer.Option("--dir", metavar="DIR", help="The folder that holds the certificates.")
]
SecretName: TypeAlias = Annotated[
    str,
    typer.Option("--secret", metavar="NAMESPACE/NAME", help="The Secret in the cluster that holds the certificates."),
]
Kubeconfig: TypeAlias = Annotated[
    str | None, typer.Option(metavar="FILE", help="The cluster. Default: the cluster of this pod, or of kubectl.")
]
KubeContext: TypeAlias = Annotated[
    str | None, typer.Option(metavar="NAME", help="The context of the kubeconfig. Default: the current context.")
]
Cluster: TypeAlias = tuple[str | None, str | None]
"""A kubeconfig and one of its contexts. None means the default."""
Names: TypeAlias = Annotated[
    list[str] | None,
    typer.Option("--name", metavar="NAME", help="Include this DNS name or IP address in the certificate; repeatable."),
]
Service: TypeAlias = Annotated[
    str, typer.Option(metavar="NAMESPACE/NAME", help="Include all names of this Service, in addition to --name.")
]
Days: TypeAlias = Annotated[int, typer.Option(min=1, metavar="DAYS", help="How long a serving certificate is valid.")]
CaDays: TypeAlias = Annotated[int, typer.Option(min=2, metavar="DAYS", help="How long an authority is valid.")]
Inject: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--inject", metavar="NAME", help="Write the CA bundle into the webhook configurations of this name; repeatable."
    ),
]
Owner: TypeAlias = Annotated[
    str,
    typer.Option(
        "--owner-namespace",
        metavar="NAME",
        help="Make this namespace the owner of the webhook configurations, so that Kubernetes deletes them with it.",
    ),
]


@app.command()
def issue(
    *,
    directory: Dir = None,
    secret: SecretName = "",
    name: Names = None,
    service: Service = "",
    days: Days = 365,
    ca_days: CaDays = 3650,
    replace: Annotated[bool, typer.Option("--replace", help="Replace the existing certificate and authority.")] = False,
    inject: Inject = None,
    kubeconfig: Kubeconfig = None,
    kube_context: KubeContext = None,
) -> int:
    """Make a new authority and a serving certificate (ECDSA P-256).

    Without --name and --service, the certificate is for localhost, 127.0.0.1 and ::1.
    """
    from certs import keep
    from certs.store import CA

    with _errors_as_usage_errors():
        store = _certificate_store(directory, secret, (kubeconfig, kube_context))
        names = _names_of_certificate(name, service) or ["localhost", "127.0.0.1", "::1"]
        lives = keep.Days(serving=days, authority=ca_days)
        keep.issue(store, names, now=datetime.now(UTC), days=lives, replace=replace)
        typer.echo(_facts_as_text(store))
        _inject_bundle_into(inject, store.read()[CA], (kubeconfig, kube_context))
    return 0


@app.command()
def show(
    *,
    directory: Dir = None,
    secret: SecretName = "",
    output: Annotated[Literal["text", "json"], typer.Option("--output", "-o", help="Output format.")] = "text",
    kubeconfig: Kubeconfig = None,
    kube_context: KubeContext = None,
) -> int:
    """Show names, dates and fingerprints. Exits with 1 if a certificate must be renewed."""
    from certs.rotate import is_due

    now = datetime.now(UTC)
    with _errors_as_usage_errors():
        store = _certificate_store(directory, secret, (kubeconfig, kube_context))
        facts = _facts_of_certificates(store)
        if not facts:
            raise CertificateError(
                f"there is no certificate{_describe_store_location(directory, secret)}; "
                "make one with `claimgate certs issue`"
            )
        typer.echo(
            json.dumps([_facts_as_json(file, one) for file, one in facts], indent=2)
            if output == "json"
            else _facts_as_text(store)
        )
    return 1 if any(is_due(one, now) for _, one in facts) else 0


@app.command()
def rotate(
    *,
    directory: Dir = None,
    secret: SecretName = "",
    name: Names = None,
    service: Service = "",
    days: Days = 365,
    ca_days: CaDays = 3650,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print what is due and change nothing.")] = False,
    every: Annotated[
        int,
        typer.Option(min=0, metavar="SECONDS", help="Check again after SECONDS, until Ctrl-C. 0: check once."),
    ] = 0,
    inject: Inject = None,
    owner: Owner = "",
    kubeconfig: Kubeconfig = None,
    kube_context: KubeContext = None,
) -> int:
    """Renew certificates in the last third of their life.

    Run this command daily, or with --every, and always with --inject. To replace the authority, a run first adds a new
    authority to the trusted bundle. A run at least an hour later signs a certificate with the new authority. By then,
    all API servers trust the authority. After another hour, a run removes the former authority from the bundle.

    If the certificates were deleted, --inject keeps the former authorities in the configurations for an hour. Without
    --name and --service, the certificate keeps its names.
    """
    from certs import keep
    from certs.repeat import repeat

    if every and dry_run:
        raise ConfigurationError("--every: a dry run checks once; leave out --every or --dry-run")
    with _errors_as_usage_errors():
        store = _certificate_store(directory, secret, (kubeconfig, kube_context))
        names, lives = _names_of_certificate(name, service), keep.Days(serving=days, authority=ca_days)

        def look() -> None:
            plan, bundle = keep.rotate(
                store,
                names,
                now=datetime.now(UTC),
                days=lives,
                pretend=dry_run,
                trusted=lambda: _bundle_of_configurations(inject, (kubeconfig, kube_context)),
            )
            for reason in plan.reasons or (() if every else ("nothing is due",)):
                typer.echo(one_line(reason))
            if not dry_run:
                _inject_bundle_into(inject, bundle, (kubeconfig, kube_context), owner, only_changes=bool(every))

        repeat(look, every) if every else look()
    return 0


@app.command("inject")
def inject_bundle(
    configuration: Annotated[
        list[str], typer.Argument(metavar="NAME", help="Validating and mutating webhook configurations.")
    ],
    *,
    directory: Dir = None,
    secret: SecretName = "",
    kubeconfig: Kubeconfig = None,
    kube_context: KubeContext = None,
) -> int:
    """Write the CA bundle into webhook configurations.

    All webhooks of the validating and mutating configurations with these names get the bundle as caBundle.
    """
    from certs.store import CA

    with _errors_as_usage_errors():
        bundle = _certificate_store(directory, secret, (kubeconfig, kube_context)).read().get(CA)
        if not bundle:
            raise CertificateError(
                f"there is no ca.crt{_describe_store_location(directory, secret)}; "
                "make one with `claimgate certs issue`"
            )
        _inject_bundle_into(configuration, bundle, (kubeconfig, kube_context))
    return 0


@contextmanager
def _errors_as_usage_errors() -> Iterator[None]:
    """Errors about certificates become one line and exit code 2."""
    try:
        yield
    except CertificateError as error:
        raise ConfigurationError(str(error)) from None


def _certificate_store(directory: Path | None, secret: str, cluster: Cluster) -> Store:
    from certs.store import Folder, Secret

    if (directory is None) == (not secret):
        raise ConfigurationError("give either --dir or --secret, to say where the certificates are")
    if directory is not None:
        return Folder(directory)
    namespace, name = _split_namespace_and_name("--secret", secret)
    return Secret(namespace, name, _core_api(cluster))


def _describe_store_location(directory: Path | None, secret: str) -> str:
    return f" in Secret {secret}" if secret else f" in {directory}"


def _core_api(cluster: Cluster) -> Any:
    from certs.cluster import core

    return core(*cluster)


def _names_of_certificate(names: list[str] | None, service: str) -> list[str]:
    from certs.issue import service_names

    all_names = list(names or ())
    if service:
        namespace, name = _split_namespace_and_name("--service", service)
        all_names = [*service_names(name, namespace), *all_names]
    return all_names


def _split_namespace_and_name(flag: str, value: str) -> tuple[str, str]:
    namespace, separator, name = value.partition("/")
    if not (namespace and separator and name) or "/" in name:
        raise ConfigurationError(f"{flag}: expected NAMESPACE/NAME, found `{value}`")
    return namespace, name


def _bundle_of_configurations(names: list[str] | None, cluster: Cluster) -> bytes:
    if not names:
        return b""
    from certs.cluster import client
    from certs.inject import bundle_of

    return bundle_of(client(*cluster), names)


def _inject_bundle_into(
    names: list[str] | None, bundle: bytes, cluster: Cluster, owner: str = "", *, only_changes: bool = False
) -> None:
    if not names:
        return
    from certs.cluster import client
    from certs.inject import inject

    for done in inject(client(*cluster), names, bundle, owner):
        if only_changes and not done.changed:
            continue
        changed = f"wrote the bundle to {counted(done.changed, 'webhook')}"
        typer.echo(one_line(f"{done.kind.replace('_', ' ')} {done.name}: {changed}"), file=sys.stderr)


def _facts_of_certificates(store: Store) -> list[tuple[str, Facts]]:
    from certs.issue import read
    from certs.keep import named
    from certs.store import CA, SERVING

    facts_with_files: list[tuple[str, Facts]] = []
    files = store.read()
    for file in (CA, SERVING):
        with named(file):
            facts_with_files += [(file, one) for one in read(files[file])] if file in files else []
    return facts_with_files


def _facts_as_json(file: str, facts: Facts) -> dict[str, Any]:
    return {
        "file": file,
        "subject": facts.subject,
        "issuer": facts.issuer,
        "names": list(facts.names),
        "notBefore": facts.not_before.isoformat(),
        "notAfter": facts.not_after.isoformat(),
        "isAuthority": facts.is_authority,
        "sha256": facts.fingerprint,
    }


def _facts_as_text(store: Store) -> str:
    from certs.store import CA

    shown, lines = _facts_of_certificates(store), []
    signer = _fingerprint_of_signer(store)
    for file, facts in shown:
        names = f"  for {', '.join(facts.names)}" if facts.names else ""
        signed = "  signed tls.crt" if file == CA and facts.fingerprint == signer else ""
        lines.append(f"{file}  {facts.subject}  until {facts.not_after.date().isoformat()}{names}{signed}")
    return "\n".join(map(one_line, lines))


def _fingerprint_of_signer(store: Store) -> str:
    """Return the fingerprint of the authority that signed the serving certificate. Authorities can have equal names
    and dates.
    """
    from certs.issue import is_signed_by, read
    from certs.keep import split
    from certs.store import CA, SERVING

    files = store.read()
    if SERVING not in files:
        return ""
    signers = [one for one in split(files.get(CA, b"")) if is_signed_by(files[SERVING], one)]
    return read(signers[0])[0].fingerprint if signers else ""
