"""Sandboxes and machines in containers of podman and docker, through the engine's command line."""
