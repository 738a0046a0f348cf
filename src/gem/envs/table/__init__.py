"""Games between players: board games and card games. See docs/table_games.md."""
