"""Private modules shared by several packages: HTTP client, event loop, worker processes, framing, text shortening.

What one package alone needs stays in that package, and untrusted code runs in sandbox: workers here isolate nothing.
"""
