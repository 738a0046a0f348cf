"""Task folders of Harbor and Terminal-Bench, played in containers: reading, playing, verifying, and writing them.

How a container is run is in gem.sandbox.containers; tasks that gem generates are in terminal.
"""
