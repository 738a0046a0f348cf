"""WebShop: find a product that an instruction describes, choose its options and buy it. See docs/webshop.md.

The official data and a generated catalogue have the same pages and rewards. Forms of other sites are in forms.
"""
