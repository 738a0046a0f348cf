"""The command `gem eval`: its flags, its policies, what it shows, and its words for folders of evaluations.

How episodes are scored is in gem.evaluation, which works without a terminal. Other commands are a module each in cli.
"""
