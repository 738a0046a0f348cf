"""What a forked process does once it is confined: programs under test, cells of sessions, and machines.

The isolation is complete before. Only what separates a program from its runner, in the same run, is here.
"""
