"""What a forked process does once it is confined: programs under test, cells of sessions, and machines."""
