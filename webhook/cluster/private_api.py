"""Uses the private parts of the kubernetes client: the connection pool of its REST client.

Its own calls decode whole answers and make objects of them; a view reads object by object. pyproject.toml bounds the
client.
"""

from __future__ import annotations

from typing import Any

from webhook.errors import DependencyChanged


def connection_pool(configuration: Any) -> Any:
    """Return the urllib3 pool that the client creates for a configuration: authorities, certificates, proxy.

    Raises:
        DependencyChanged: the client has no pool there any more.
    """
    import kubernetes
    import urllib3

    package: Any = kubernetes
    manager = getattr(package.client.rest.RESTClientObject(configuration), "pool_manager", None)
    if not isinstance(manager, urllib3.PoolManager):
        raise DependencyChanged("kubernetes", "RESTClientObject.pool_manager")
    return manager
