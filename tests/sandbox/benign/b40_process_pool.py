# KIND: benign SEVERITY: must CLASS: benign EXPECT_OUT: 328350_[0,_1,_4]_56
import math
import multiprocessing
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor, as_completed

counter = multiprocessing.Value("i", 0)


def square(n):
    with counter.get_lock():
        counter.value += 1
    return n * n


if __name__ == "__main__":
    with ProcessPoolExecutor(4) as pool:
        total = sum(future.result() for future in as_completed([pool.submit(square, n) for n in range(100)]))
    with multiprocessing.Pool(3) as pool:
        squares = pool.map(square, range(3), chunksize=1)
    assert counter.value == 103
    with ThreadPoolExecutor(8) as pool:
        print(total, squares, sum(pool.map(lambda n: math.comb(n, 3), range(9))) - 70)
