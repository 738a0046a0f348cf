"""Service desks: an agent with tools and a policy talks to a simulated customer."""
