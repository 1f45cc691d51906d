"""The other objects of the cluster, from files or from a live API server.

Reads only. Knows objects by kind, namespace and name, and not their meaning.
"""

from webhook.cluster.lookup import Cluster

__all__ = ["Cluster"]
