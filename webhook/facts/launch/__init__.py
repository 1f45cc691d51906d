"""The processes, nodes, ranks and variables that the containers of an object start, and whether they fit each other."""
