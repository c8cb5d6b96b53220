"""Tables and figures of the four papers, one command each; see `benchmarks.paper`."""
