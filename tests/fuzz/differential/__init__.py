"""One long-lived process, compared with a fresh evaluation of every review. No remembered value may change an answer."""
