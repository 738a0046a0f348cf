"""Web pages with forms, rendered from state."""
