"""What was found, and one file per format that it is written in."""
