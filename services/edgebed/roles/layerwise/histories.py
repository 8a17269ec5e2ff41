"""How histories of shards are numbered: what is trained after each backup that shards resume from is one of its own."""

HISTORIES = 1_000_000
"""Number of histories for each incarnation of the server."""
