"""check_env() and what it checks: an environment's interface, determinism, scores, secrets; recorded games.

Each check holds for every environment. What one environment alone promises is in its own tests.
"""
