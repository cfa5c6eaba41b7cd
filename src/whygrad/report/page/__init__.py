"""The parts of the HTML page that are not on paper yet: its anchors, its source listing, and its three plain files."""
