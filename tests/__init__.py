"""The tests; `tests.cases`, `tests.data` and `tests.oracles.models` are shared among them."""
