"""Objects of OpenSandbox and agent-sandbox, and the pods of shards (replicas with patches) of a BatchSandbox."""
