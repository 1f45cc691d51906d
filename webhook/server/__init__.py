"""The server: connections, the two lanes of reviews, reloads, metrics, readiness."""
