"""Objects of OpenSandbox and agent-sandbox, and the pods that their shards make."""
