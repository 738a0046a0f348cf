"""check_env() and what it checks: an environment's interface, determinism, scores, secrets; recorded games."""
