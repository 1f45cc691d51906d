"""The playground of `claimgate ui`: a page on loopback that evaluates texts of the user. Not a part of the server."""
