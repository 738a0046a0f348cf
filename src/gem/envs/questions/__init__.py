"""One question, one answer: math, facts, code, logic, pictures, Reasoning Gym. What has turns of its own is a game.

How an answer is judged is in gem.graders, and how rows are read in gem.datasets.
"""
