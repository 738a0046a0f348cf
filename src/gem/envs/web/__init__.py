"""Tasks in a browser: generated forms, a shop, an encyclopedia."""
