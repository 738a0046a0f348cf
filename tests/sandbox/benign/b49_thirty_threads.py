# KIND: benign SEVERITY: must CLASS: benign EXPECT_OUT: 30_threads_465
import queue
import threading

jobs, results, lock = queue.Queue(), [], threading.Lock()
barrier, local = threading.Barrier(30), threading.local()


def work():
    local.seen = jobs.get()
    barrier.wait(15)
    with lock:
        results.append(local.seen)
    jobs.task_done()


threads = [threading.Thread(target=work) for _ in range(30)]
for number, thread in enumerate(threads, 1):
    thread.start()
    jobs.put(number)
jobs.join()
timer = threading.Timer(0.01, lambda: print(len(threads), "threads", sum(results)))
timer.start()
timer.join()
