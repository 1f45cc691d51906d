"""The other objects of the cluster, from files or from a live API server.

This package only reads objects. It knows the kind, namespace and name of an object, and not the meaning of its fields.
"""

from webhook.cluster.lookup import Cluster

__all__ = ["Cluster"]
