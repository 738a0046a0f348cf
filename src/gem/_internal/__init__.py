"""Private modules shared by several packages: HTTP client, event loop, worker processes, framing, text shortening."""
