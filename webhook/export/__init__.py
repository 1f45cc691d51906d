"""What a cluster is given of a policy set: native policies, webhook rules, a ClusterRole."""
