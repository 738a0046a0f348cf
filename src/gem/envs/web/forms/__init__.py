"""Tasks on generated pages with forms, as a browser shows them.

A page is data here, and no browser runs. Shops of the published WebShop are in webshop.
"""
