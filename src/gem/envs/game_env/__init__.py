"""Text games, one file per game; base.py holds their common base class."""
