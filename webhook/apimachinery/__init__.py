"""The parts of every object and every request: names, field paths, quantities, lists, releases, attributes."""
