"""Which of scikit-learn's tests are run, and what differs by design, with the reason.

After the name of a test, in brackets, what the ids of the cases that differ have in common, a
regular expression: the others have to pass, and those that differ to fail.
"""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["DIFFERENCES", "LEFT_OUT", "MODULES"]

MODULES = (
    "sklearn.svm.tests.test_svm",
    "sklearn.feature_selection.tests.test_from_model",
    "sklearn.ensemble.tests.test_voting",
    "sklearn.ensemble.tests.test_stacking",
    "sklearn.tests.test_multiclass",
    "sklearn.linear_model.tests.test_logistic",
    "sklearn.feature_selection.tests.test_rfe",
    "sklearn.ensemble.tests.test_bagging",
    "sklearn.ensemble.tests.test_weight_boosting",
    "sklearn.model_selection.tests.test_search",
    "sklearn.model_selection.tests.test_classification_threshold",
    "sklearn.tests.test_calibration",
)

# tests that mention one of these, in their name or in their body, are not run
LEFT_OUT: Mapping[str, str] = {
    "LogisticRegressionCV": "most tests read paths and scores of folds by its names, at one C "
    "of all folds, where ours share one alpha",
    "test_warm_start_newton_solver": "counts Newton steps, slow on the separable classes of iris",
    "test_elastic_net_vs_l1_l2": "25 fits at C=1e6, slow, to compare accuracies",
    "test_calibration_default_estimator": "asks for scikit-learn's own class",
    "test_temperature_scaling": "slow without a penalty, of their own calibration",
    "_array_api_for_tests": "skipped unless SCIPY_ARRAY_API is set",
}

PRIVATE = "reads or writes private attributes of scikit-learn's class"
PAIRS = "several classes are fitted one against the rest, not one against one"
PROBABILITIES = "probabilities of an SVM are those of CalibratedMargin, and no parameter of it"
NEGATIVE = "negative weights are refused, not taken as zero"
WARNINGS = "warnings tell the gap that was reached, in other words"
HARD = "C is finite: a hard margin is MulticlassSVC('l2', C=None, eta=0)"
ALL_SAMPLES = "its kernel is right of all training samples only: supports are asked for"
OVERFLOW = "data whose products overflow are refused by column and row"
SPARSIFY = "no sparsify(): scipy.sparse.csr_array(model.coef_)"
ITERATIONS = "max_iter counts other iterations, and the shim passes none on"
SEPARABLE = "without a penalty separable data have no optimum, which a warning tells"
DEPRECATED = "parameters that scikit-learn deprecates are not taken"
UNSUMMED = "without a penalty coefficients sum to zero over the classes up to the tolerance"
GAPS = "relative gaps of 1e-8 leave the fourth digit of probabilities open"
CALLBACKS = "callbacks are those of this library, a parameter"
TWO_SIGNATURES = "parameters of liblinear: penalties and losses are classes of their own"

DIFFERENCES: Mapping[str, Mapping[str, str]] = {
    "sklearn.svm.tests.test_svm": {
        "test_libsvm_parameters": "a linear model has no support_vectors_: X[support_]",
        "test_precomputed": PAIRS,
        "test_sparse_precomputed": "the refusal of sparse kernels has other words",
        "test_tweak_params": PRIVATE,
        "test_gamma_scale": PRIVATE,
        "test_svc_raises_error_internal_representation": PRIVATE,
        "test_immutable_coef_property": "coef_ is an attribute, not a property",
        "test_probability": PROBABILITIES,
        "test_hasattr_predict_proba": PROBABILITIES,
        "test_probability_raises_futurewarning[e-SVC]": PROBABILITIES,
        "test_svc_nusvc_probA_probB_deprecated[^SVC$]": PROBABILITIES,
        "test_decision_function_shape[^SVC$]": PAIRS,
        "test_svc_invalid_break_ties_param[^SVC$]": PAIRS,
        "test_svc_ovr_tie_breaking[^SVC$]": PAIRS,
        "test_n_iter_libsvm[-SVC-]": PAIRS,
        "test_negative_sample_weights_mask_all_samples[-SVC$]": NEGATIVE,
        "test_negative_weights_svc_leave_just_one_label[-SVC$]": NEGATIVE,
        "test_negative_weights_svc_leave_two_labels[1-SVC$]": NEGATIVE,
        "test_negative_weight_equal_coeffs[1-SVC$]": NEGATIVE,
        "test_bad_input": "a model of dense data also predicts sparse ones",
        "test_svc_nonfinite_params": OVERFLOW,
        "test_linearsvc_parameters[True-l1|False-l.-hinge]": TWO_SIGNATURES,
        "test_linearsvc_crammer_singer": TWO_SIGNATURES,
        "test_dense_liblinear_intercept_handling": "the intercept is free, not penalised",
        "test_libsvm_convergence_warnings": WARNINGS,
        "test_linear_svm_convergence_warnings": ITERATIONS,
        "test_custom_kernel_not_array_input[^SVC$]": ALL_SAMPLES,
        "test_svm_with_infinite_C[-SVC-]": HARD,
    },
    "sklearn.feature_selection.tests.test_from_model": {
        "test_feature_importance_sparse": SPARSIFY,
    },
    "sklearn.linear_model.tests.test_logistic": {
        "test_sparsify": SPARSIFY,
        "test_inconsistent_input": "numbers of samples that differ are refused in other words",
        "test_liblinear_dual_random_state": "no optimum depends on random_state",
        "test_logistic_regression_solvers_multiclass_unpenalized": UNSUMMED,
        "test_logreg_predict_proba_multinomial": PRIVATE,
        "test_max_iter[max_iter0|liblinear|lbfgs|sag|newton-cg]": ITERATIONS,
        "test_warm_start[-False-]": ITERATIONS,
        "test_zero_max_iter": ITERATIONS,
        "test_newton_cholesky_fallback_to_lbfgs": SEPARABLE,
        "test_elastic_net_l1_l2_equivalence[l1-]": DEPRECATED,
        "test_l1_ratio_non_elasticnet": DEPRECATED,
        "test_penalty_none": DEPRECATED,
        "test_logisticregression_warns_with_n_jobs": DEPRECATED,
        "test_lr_penalty_l1ratio_incompatible": DEPRECATED,
        "test_dtype_match[-(lbfgs|newton|sag)]": "coefficients are float64 of any data",
        "test_large_sparse_matrix[liblinear|sag]": "64-bit indices are taken by every solver",
        "test_liblinear_with_large_values": OVERFLOW,
        "test_logistic_regression_callback_support": CALLBACKS,
        "test_logistic_regression_callback_fitted_estimator": CALLBACKS,
        "test_logistic_regression_callback_support_warning": CALLBACKS,
    },
    "sklearn.feature_selection.tests.test_rfe": {
        "test_rfecv": PAIRS,
        "test_rfe_sparse_coef": SPARSIFY,
    },
    "sklearn.ensemble.tests.test_bagging": {
        "test_bagging_small_max_features": "classes whose weights are all zero are no classes",
    },
    "sklearn.model_selection.tests.test_search": {
        "test_search_cv_results_rank_tie_breaking": PAIRS,
        "test_search_cv_sample_weight_equivalence[estimator0]": GAPS,
    },
}
