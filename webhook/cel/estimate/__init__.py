"""What an expression may cost, before any input is there."""
