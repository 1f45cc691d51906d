"""The playground of `claimgate ui`: a page on loopback that evaluates texts of the user. Each evaluation runs in a
separate process with bounded time and memory. Not a part of the webhook server.
"""
