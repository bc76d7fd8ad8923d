"""How many cases each law is tried on."""

import os

from hypothesis import HealthCheck, Phase, settings

# Few cases by default, always the same; CORRAL_PROPERTY_EXAMPLES=1000 tries a thousand
# new ones of each law.
_ASKED = os.environ.get("CORRAL_PROPERTY_EXAMPLES")

settings.register_profile(
    "corral",
    max_examples=int(_ASKED or "2"),
    derandomize=_ASKED is None,
    database=None,
    deadline=None,
    print_blob=True,
    # A smaller case that fails takes minutes to find.
    phases=tuple(Phase) if _ASKED else (Phase.explicit, Phase.generate),
    # What is slow are fits, not the rows that are drawn for them.
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.load_profile("corral")
