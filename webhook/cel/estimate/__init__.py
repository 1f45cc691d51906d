"""Estimates what an expression may cost before any input is known."""
