"""What runs in the caller's process: start fork servers, launch runs, follow them, and collect their output."""
