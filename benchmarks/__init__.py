"""Timings against other packages, and the tables of the papers that the models are from.

Times are compared at equal certified gap.

    python -m benchmarks peers [--quick]     every solver, every model: seconds to certified gaps
    python -m benchmarks paths               paths of 100 strengths, certified one by one
    python -m benchmarks cv                  cross-validated paths, all models certified
    python -m benchmarks environment         what adelie and glum need to take part in these two
    python -m benchmarks unified             the seven models of Ito et al. against peers
    python -m benchmarks cells               single fits of everyday models, at equal gap
    python -m benchmarks kernels             kernel machines on 50,000 samples
    python -m benchmarks hinge               exact hinges against primal-dual steps and solvers
    python -m benchmarks drsvm               solvers of the doubly regularised SVM, at equal gap
    python -m benchmarks rules               what `auto` chose against every named solver
    python -m benchmarks kernel-grid         kernel SVMs against LIBSVM and scikit-learn-intelex
    python -m benchmarks ridges              strengths of ridge models, more features than samples
    python -m benchmarks sharing             folds, classes and grids on the same data
    python -m benchmarks limits              limits of time and memory
    python -m benchmarks device              data on a GPU against the processor and cuML
    python -m benchmarks startup             the first fit of a process
    python -m benchmarks tiny                fits to few samples
    python -m benchmarks paper X3 I4 IF6     tables, figures of the papers, a file each
    python -m benchmarks paper overview      PAPERS.md, their verdicts
    python -m benchmarks summary             RESULTS.md, one page over all results
    python -m benchmarks check               the certificate used here against reference optima

The data sets are read from `$PROXMARGIN_DATA/data` (default: `shared` beside the checkout).
Results go to `benchmarks/results/`, a file a command; RESULTS.md is a page over them.
"""
