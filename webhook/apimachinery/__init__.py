"""What every object and every request has: names, field paths, quantities, lists, releases, attributes."""
