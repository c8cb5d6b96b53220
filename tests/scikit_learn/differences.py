"""Which of scikit-learn's tests are run, and what differs by design, with the reason."""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["DIFFERENCES", "MODULES"]

MODULES = (
    "sklearn.svm.tests.test_svm",
    "sklearn.feature_selection.tests.test_from_model",
    "sklearn.ensemble.tests.test_voting",
    "sklearn.ensemble.tests.test_stacking",
    "sklearn.tests.test_multiclass",
)

PRIVATE = "reads or writes private attributes of scikit-learn's class"
PAIRS = "several classes are fitted one against the rest, not one against one"
PROBABILITIES = "probabilities of an SVM are those of CalibratedMargin, and no parameter of it"
NEGATIVE = "negative weights are refused, not taken as zero"
WARNINGS = "warnings tell the gap that was reached, in other words"
HARD = "C is finite: a hard margin is MulticlassSVC('l2', C=None, eta=0)"
ALL_SAMPLES = "its kernel is right of all training samples only: supports are asked for"
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
        "test_probability_raises_futurewarning": PROBABILITIES,
        "test_svc_nusvc_probA_probB_deprecated": PROBABILITIES,
        "test_decision_function_shape": PAIRS,
        "test_svc_invalid_break_ties_param": PAIRS,
        "test_svc_ovr_tie_breaking": PAIRS,
        "test_n_iter_libsvm": PAIRS,
        "test_negative_sample_weights_mask_all_samples": NEGATIVE,
        "test_negative_weights_svc_leave_just_one_label": NEGATIVE,
        "test_negative_weights_svc_leave_two_labels": NEGATIVE,
        "test_negative_weight_equal_coeffs": NEGATIVE,
        "test_bad_input": "a model of dense data also predicts sparse ones",
        "test_svc_nonfinite_params": "data whose products overflow are refused by column and row",
        "test_linearsvc_parameters": TWO_SIGNATURES,
        "test_linearsvc_crammer_singer": TWO_SIGNATURES,
        "test_dense_liblinear_intercept_handling": "the intercept is free, not penalised",
        "test_libsvm_convergence_warnings": WARNINGS,
        "test_linear_svm_convergence_warnings": "max_iter counts other iterations",
        "test_custom_kernel_not_array_input": ALL_SAMPLES,
        "test_svm_with_infinite_C": HARD,
    },
    "sklearn.feature_selection.tests.test_from_model": {
        "test_feature_importance_sparse": "no sparsify(): scipy.sparse.csr_array(model.coef_)",
    },
}
