"""Generated tasks on a machine with a shell, one module per kind: files, text, data, logs, git. See docs/terminal.md.

Tasks that come with a repository and tests are in swe, and those in folders of other benchmarks in containers.
"""
