"""The verbs, one file each: a command reads its input, calls the rooms below and writes what came out."""
