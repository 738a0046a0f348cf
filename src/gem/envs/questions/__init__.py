"""One question, one answer: math, facts, code, logic, pictures, Reasoning Gym. What has turns of its own is a game."""
