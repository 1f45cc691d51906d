"""What is used of the kubernetes client that it does not promise: the pool of connections behind its REST client.

Its own calls decode whole answers and make objects of them; a view reads object by object. pyproject.toml bounds the
client.
"""

from __future__ import annotations

from typing import Any

from webhook.errors import DependencyChanged


def connection_pool(configuration: Any) -> Any:
    """The urllib3 pool that the client makes of a configuration: authorities, certificates, proxy.

    Raises:
        DependencyChanged: it is kept elsewhere now, or something else is.
    """
    import kubernetes
    import urllib3

    package: Any = kubernetes
    manager = getattr(package.client.rest.RESTClientObject(configuration), "pool_manager", None)
    if not isinstance(manager, urllib3.PoolManager):
        raise DependencyChanged("kubernetes", "RESTClientObject.pool_manager")
    return manager
