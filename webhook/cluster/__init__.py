"""The other objects of the cluster, from files or from a live API server.

Reads only. Knows objects by kind, namespace and name, and nothing of what they mean.
"""

from webhook.cluster.lookup import Cluster

__all__ = ["Cluster"]
