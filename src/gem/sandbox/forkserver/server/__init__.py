"""The fork server: a process that imports libraries once and forks for each run. It runs no untrusted code itself."""
