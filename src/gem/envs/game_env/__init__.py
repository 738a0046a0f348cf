"""Games, one file per family; base.py holds what they share."""
