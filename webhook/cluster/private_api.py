"""Uses the private parts of the kubernetes client: the connection pool of its REST client.

The client's functions decode a whole answer at once; a view decodes object by object. pyproject.toml bounds the client.
"""

from __future__ import annotations

from typing import Any

from webhook.errors import DependencyChanged


def connection_pool(configuration: Any) -> Any:
    """Return the client's urllib3 pool for the authorities, certificates and proxy of a configuration.

    Raises:
        DependencyChanged: this version of the client has no such pool.
    """
    import kubernetes
    import urllib3

    package: Any = kubernetes
    manager = getattr(package.client.rest.RESTClientObject(configuration), "pool_manager", None)
    if not isinstance(manager, urllib3.PoolManager):
        raise DependencyChanged("kubernetes", "RESTClientObject.pool_manager")
    return manager
