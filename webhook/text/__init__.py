"""Text for people: wording, similar names, what a terminal may show. Its caches of users' texts have bounds."""
