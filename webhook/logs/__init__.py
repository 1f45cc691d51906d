"""Log lines, as JSON or text, and the thread that writes them."""
