"""What the containers of an object start: processes, nodes, ranks and variables that fit each other or do not."""
