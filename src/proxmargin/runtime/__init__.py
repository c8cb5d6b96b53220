"""The process: whole files, signals, threads, speed of BLAS, memoised results, libraries."""
