"""Objects of OpenSandbox and agent-sandbox, and the pods of their shards."""
