"""Text for people: wording, similar names, safe text for terminals, and bounded caches of users' texts."""
