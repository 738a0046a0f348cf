"""Tasks on a machine with a shell: commands, tasks and their verification; each family is a package below.

Tasks in a browser belong in web, and agents that talk to a customer in desks.
"""
