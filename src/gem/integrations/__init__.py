"""Adapters to training frameworks, one module per framework. docs/frameworks.md shows how to use them.

Each adapter imports its framework when it is used, and says which version it supports if another one is installed.
"""
