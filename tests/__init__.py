"""The tests; `tests.cases`, `tests.shared_data` and `tests.oracles.models` are shared among
them."""
