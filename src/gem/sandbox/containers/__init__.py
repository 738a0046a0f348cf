"""Sandboxes and machines in containers of podman and docker, through the engine's command line.

Images are never pulled. What tasks expect in an image is in envs.computers.containers and swe.
"""
