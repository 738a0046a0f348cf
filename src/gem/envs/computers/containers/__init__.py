"""Task folders of Harbor and Terminal-Bench, played in containers."""
