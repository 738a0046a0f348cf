"""What runs in the caller's process: start fork servers, launch runs, follow them, and collect their output.

Whatever arrives from a run is untrusted here. Nothing forks here, and no code of a program is run or unpickled.
"""
