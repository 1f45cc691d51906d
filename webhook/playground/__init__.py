"""The playground of `claimgate ui`: a page on loopback that evaluates texts of the user, each in a separate process
with bounded time and memory. Never part of a server that answers admission.
"""
