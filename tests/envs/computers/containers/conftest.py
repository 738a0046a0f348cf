collect_ignore_glob = ["tasks/*"]  # folders of tasks, whose tests run in containers
