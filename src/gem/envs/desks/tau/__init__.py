"""TAU-bench and tau2-bench, played from a checkout of each in $GEM_DATA. See docs/tau.md."""
