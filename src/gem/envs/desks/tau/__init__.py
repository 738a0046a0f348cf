"""TAU-bench and tau2-bench, played from a checkout of each in $GEM_DATA. See docs/tau.md.

Their code and data are not part of gem. Desks of gem's own are in desk.
"""
