"""Settings: each flag, its environment variable, default and help declared once, and read in one way."""
