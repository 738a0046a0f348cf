"""What an agent can use besides its own words."""
