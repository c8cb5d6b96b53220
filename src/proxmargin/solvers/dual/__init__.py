"""Methods on the dual of losses whose dual points are bounded."""
