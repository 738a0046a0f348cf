# KIND: benign SEVERITY: must CLASS: benign EXPECT_OUT: [1,_4,_9]_7_[4,_5]_True
import multiprocessing
from concurrent.futures import ProcessPoolExecutor


def square(n):
    return n * n


def work(queue, lock, number, event):
    with lock:
        event.set()
        number.value += 7
        queue.put(number.value)


if __name__ == "__main__":
    spawn = multiprocessing.get_context("spawn")
    with spawn.Pool(2) as pool:
        squares = pool.map(square, [1, 2, 3])
    queue, lock, number, event = spawn.Queue(), spawn.Lock(), spawn.Value("i", 0), spawn.Event()
    process = spawn.Process(target=work, args=(queue, lock, number, event))
    process.start()
    total = queue.get()
    process.join()
    server = multiprocessing.get_context("forkserver")
    with ProcessPoolExecutor(1, mp_context=server) as pool:
        more = list(pool.map(square, [2])) + [pool.submit(int, "5").result()]
    print(squares, total, more, event.wait(10))
