"""Which tenant a request is charged to: the client's address, the namespace of the object, then the user who asks.

The address comes first because API servers have few, and what comes from elsewhere may name any namespace and user. The
namespace comes next because controllers in kube-system create the Pods of everybody: they have no account of their
own, only those of the namespaces that they work in. kube-apiserver does the same for them: its flow schemas
`kube-controller-manager` and `kube-system-service-accounts` distinguish by namespace (k8s.io/apiserver v0.36
pkg/apis/flowcontrol/bootstrap/default.go). All service accounts of a namespace are one user, because whoever may create
one may create hundreds.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from webhook.apimachinery.attributes import Attributes

_SERVICE_ACCOUNT: Final = "system:serviceaccount:"
_CONTROLLERS: Final = ("system:serviceaccount:kube-system", "system:kube-controller-manager", "system:kube-scheduler")
_PROBES: Final = ("/healthz", "/readyz")
PAGES: Final = frozenset((*_PROBES, "/metrics", "/version", "/debug/policies", "/docs", "/openapi.json"))
"""The paths that the server answers beside reviews."""
_LONGEST_NAME: Final = 512
"""How many characters of a user name are remembered: a service account's name with its namespace has 340 at most."""


class Tenant(NamedTuple):
    """A namespace, "" for objects without one, a user, "" where only the namespace counts, and the client's address, ""
    where it does not count.
    """

    namespace: str
    user: str
    address: str = ""


def tenant_of(attributes: Attributes | None, address: str) -> Tenant:
    """Return the tenant of a request that came from an address; no namespace and user where it could not be read."""
    if attributes is None:
        return Tenant("", "", address)
    user = attributes.user_info.username[:_LONGEST_NAME]
    if user.startswith(_SERVICE_ACCOUNT):
        user = user[: user.find(":", len(_SERVICE_ACCOUNT))]
    return Tenant(attributes.namespace, "" if user in _CONTROLLERS else user, address)


def page_tenant(path: str, address: str) -> Tenant:
    """Return the tenant of a request that is not a review; its slash keeps it apart from namespaces.

    All paths that the server does not know share one namespace: a client can invent as many as it likes, each of 4 KB.

    Each address has an account of its own for each probe, so that nobody's flood of probes makes a kubelet wait, and
    that what else comes from the kubelet's address does not, either.
    """
    if path in _PROBES:
        return Tenant(f"/{path} {address}", "", f"/{path} {address}")
    return Tenant(f"/{path}" if path in PAGES else "//", address, address)


def handshake_tenant(address: str) -> Tenant:
    """Return the tenant of a TLS handshake, one for each address, so that one address cannot keep out the others.

    It is an account apart from what the same address asks for afterwards. All handshakes together count as one address:
    hundreds of addresses that connect without end do not go before reviews.
    """
    return Tenant(f"/handshake {address}", "", "/handshakes")
