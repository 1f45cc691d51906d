"""What else is in the cluster, from files, from a live API server, or from a record of either.

Reads only. Knows objects by kind, namespace and name, and nothing of what they mean.
"""

from webhook.cluster.lookup import Cluster

__all__ = ["Cluster"]
