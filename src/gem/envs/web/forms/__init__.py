"""Tasks on generated pages with forms, as a browser shows them."""
