"""Service desks: an agent with tools and a policy talks to a simulated customer. A shop, and a phone provider.

Everything is generated from a seed here. Desks whose tasks are read from a checkout are in tau.
"""
