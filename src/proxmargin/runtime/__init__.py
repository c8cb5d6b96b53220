"""Services of the process: atomic files, signals, threads, BLAS speed, memoised results."""
