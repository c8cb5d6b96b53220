"""The process: files written whole, signals, threads, the speed of BLAS, memoised results."""
