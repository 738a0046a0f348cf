"""Tasks in a browser: generated forms, a shop, an encyclopedia. Here is only what guards text of web pages.

Tools that search or read the real web are in gem.tools.search.
"""
