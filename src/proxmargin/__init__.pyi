"""Public names as type checkers see them; the package itself imports each when asked for."""

from . import (
    losses as losses,
    paths as paths,
    penalties as penalties,
    reports as reports,
    stats as stats,
)
from .data.datasets import Dataset as Dataset
from .data.inputs.opening import open_dataset as open_dataset
from .files.models.model import load_model as load_model, save_model as save_model
from .files.models.onnx import to_onnx as to_onnx
from .files.tables.table import read_data as read_data
from .models.auditing import certify as certify
from .models.classifiers.custom import MarginClassifier as MarginClassifier
from .models.classifiers.ddag import DDAGClassifier as DDAGClassifier
from .models.classifiers.elastic_net import (
    ElasticNetSVC as ElasticNetSVC,
    HuberizedSVC as HuberizedSVC,
    SparseLogisticRegression as SparseLogisticRegression,
    SquaredHingeSVC as SquaredHingeSVC,
)
from .models.classifiers.minimax import MarginFDA as MarginFDA, MarginMPM as MarginMPM
from .models.classifiers.multiclass import MulticlassSVC as MulticlassSVC
from .models.classifiers.nu_dwd import DWD as DWD, NuSVC as NuSVC
from .models.classifiers.regularized import (
    L2SVC as L2SVC,
    SVC as SVC,
    LogisticRegression as LogisticRegression,
)
from .models.limits.kappa import kappa_max as kappa_max
from .models.limits.nu import nu_range as nu_range
from .models.paths import (
    Path as Path,
    alpha_grid as alpha_grid,
    alpha_max as alpha_max,
    critical_C as critical_C,
    margin_path as margin_path,
)
from .models.permutations import (
    PermutationTest as PermutationTest,
    permutation_test as permutation_test,
)
from .models.selection.calibration import CalibratedMargin as CalibratedMargin
from .models.selection.cross_validated import (
    SVCCV as SVCCV,
    ElasticNetSVCCV as ElasticNetSVCCV,
    HuberizedSVCCV as HuberizedSVCCV,
    LogisticRegressionCV as LogisticRegressionCV,
    MulticlassSVCCV as MulticlassSVCCV,
    SparseLogisticRegressionCV as SparseLogisticRegressionCV,
    SquaredHingeSVCCV as SquaredHingeSVCCV,
)
from .models.selection.report import feature_report as feature_report
from .models.selection.stability.selector import StabilitySelection as StabilitySelection
from .optimality.certificates.certificate import (
    Certificate as Certificate,
    CertificateList as CertificateList,
)
from .solvers.callbacks import Checkpoint as Checkpoint, History as History, Progress as Progress
from .studies.comparing.comparison import Comparison as Comparison
from .studies.comparing.run import compare as compare
from .studies.comparing.several import (
    SeveralComparisons as SeveralComparisons,
    compare_several as compare_several,
)
from .studies.displays.comparison import ComparisonDisplay as ComparisonDisplay
from .studies.displays.fits import (
    ConvergenceDisplay as ConvergenceDisplay,
    CriticalDifferenceDisplay as CriticalDifferenceDisplay,
    PermutationDisplay as PermutationDisplay,
)
from .studies.displays.strengths import (
    CVDisplay as CVDisplay,
    PathDisplay as PathDisplay,
    StabilityDisplay as StabilityDisplay,
)

__version__: str
