"""The list of classes that a model's file may hold, and what each looks like.

Nothing that is not named here is read. The forms of COR and its parts, of tables, of
the other methods and of scikit-learn's estimators have a file each.
"""

from corral.persist._forms_cor import COR_FORMS
from corral.persist._forms_methods import METHOD_FORMS
from corral.persist._forms_sklearn import SKLEARN_FORMS
from corral.persist._forms_tables import TABLE_FORMS
from corral.persist._kinds import FORMS as FORMS

FORMS.update(COR_FORMS)
FORMS.update(METHOD_FORMS)
FORMS.update(SKLEARN_FORMS)
FORMS.update(TABLE_FORMS)

# The classes that may be a model by themselves.
MODELS = frozenset(
    {
        "corral._cor.COR",
        "corral._detector.CORDetector",
        "corral.detectors._cof.COF",
        "corral.detectors._fast_abod.FastABOD",
        "corral.detectors._holoentropy.Holoentropy",
        "corral.detectors._iforest.IForest",
        "corral.detectors._ldof.LDOF",
        "corral.detectors._lof.LOF",
        "corral.detectors._opca.OPCA",
        "corral.detectors._tonmf.TONMF",
        "corral.rivals._charikar.KCenterOutliers",
        "corral.rivals._charikar.KMedianOutliers",
        "corral.rivals._density.DBSCAN",
        "corral.rivals._density.HDBSCAN",
        "corral.rivals._kcc.KCC",
        "corral.rivals._kmeans_minus_minus.KMeansMinusMinus",
        "corral.rivals._kmeans_plus_one.KMeansPlusOne",
        "corral.rivals._lagrangian.LagrangianClustering",
        "corral.rivals._neo_kmeans.NEOKMeans",
        "corral.tables._model.TableModel",
    }
)
