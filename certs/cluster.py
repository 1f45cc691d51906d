"""Connects to a live cluster, for the Secret and the webhook configurations.

The kubernetes package is imported when it is needed. Errors of the cluster become texts for users.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from certs import CertificateError


@contextmanager
def refused(what: str) -> Iterator[None]:
    """Turn an error of the cluster about `what` into one line.

    Raises:
        CertificateError: the cluster answered with an error, or not at all.
    """
    from kubernetes.client.exceptions import ApiException
    from urllib3.exceptions import HTTPError

    try:
        yield
    except ApiException as error:
        raise CertificateError(f"{what}: {_message(error)}") from None
    except HTTPError as error:
        raise CertificateError(f"{what}: the cluster cannot be reached: {error}") from None


def none_if_absent(call: Callable[[], Any]) -> Any:
    """Return the result of the call; None for an absent object."""
    from kubernetes.client.exceptions import ApiException

    try:
        return call()
    except ApiException as error:
        if error.status == 404:
            return None
        raise


def client(kubeconfig: str | None, context: str | None = None) -> Any:
    """Return a client from the kubeconfig and context, the Pod of this process, or the default kubeconfig.

    Raises:
        CertificateError: no configuration is usable.
    """
    from kubernetes import config
    from kubernetes.config.config_exception import ConfigException

    load: Any = config.new_client_from_config
    try:
        if kubeconfig is None and context is None:
            try:
                return _in_cluster()
            except ConfigException:
                pass
        return load(config_file=kubeconfig, context=context)
    except Exception as error:  # noqa: BLE001 - the package checks no types: another form of file raises anything
        raise CertificateError(f"{_unusable(kubeconfig, error)}; name a kubeconfig with --kubeconfig") from None


def core(kubeconfig: str | None, context: str | None = None) -> Any:
    """Return the core API of the cluster, which has Secrets.

    Raises:
        CertificateError: no configuration is usable.
    """
    connected = client(kubeconfig, context)
    from kubernetes.client import CoreV1Api

    return CoreV1Api(connected)


def _unusable(kubeconfig: str | None, error: Exception) -> str:
    # as in webhook/cluster/connection.py, which this package does not import
    from kubernetes.config.config_exception import ConfigException

    if kubeconfig is None and "No configuration found" in str(error):
        return "no cluster is configured by KUBECONFIG, ~/.kube/config or the service account of a pod"
    name = f"kubeconfig {kubeconfig}" if kubeconfig else "the default kubeconfig"
    if kubeconfig and not Path(kubeconfig).exists():
        return f"{name}: no such file"
    if isinstance(error, OSError):
        return f"{name}: {(error.strerror or str(error)).lower()}"
    if isinstance(error, ConfigException):
        return f"{name}: {re.sub(r'^Invalid kube-config( file)?[.] ', '', str(error)).rstrip('.')}"
    return f"{name}: expected YAML with clusters, users, contexts and current-context"


def _in_cluster() -> Any:
    from kubernetes import client, config

    load: Any = config.load_incluster_config
    configuration = client.Configuration()
    load(client_configuration=configuration)
    return client.ApiClient(configuration)


def _message(error: Any) -> str:
    try:
        return str(json.loads(error.body)["message"])
    except (TypeError, ValueError, KeyError):
        return f"the cluster answered {error.status} {error.reason}"
