"""The other objects of the cluster, from files or from a live API server.

Only reads objects. Knows their kind, namespace and name, and not the meaning of their fields.
"""

from webhook.cluster.lookup import Cluster

__all__ = ["Cluster"]
