"""Makes the objects that a cluster needs for a policy set: native policies, webhook rules, a ClusterRole."""
