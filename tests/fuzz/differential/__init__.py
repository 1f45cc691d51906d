"""One long-lived process against a fresh evaluation of every review: what is remembered must not change an answer."""
