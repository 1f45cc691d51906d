"""One long-lived process, compared with a fresh evaluation of every review: a remembered value must not change an
answer."""
