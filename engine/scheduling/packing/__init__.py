"""How many nodes of which kinds hold given pods for the least money, and how near that is to it."""
