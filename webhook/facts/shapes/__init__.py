"""Whether objects and pod templates are of the types that their kinds declare (webhook/schema)."""
