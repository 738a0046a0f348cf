# KIND: benign SEVERITY: should CLASS: benign EXPECT_OUT: sum_6_of_True
import multiprocessing
import os
from concurrent.futures import ProcessPoolExecutor

PARENT = []


def start(value):
    PARENT.append(value)


def parts(n):
    return n, PARENT[0] != os.getpid()


if __name__ == "__main__":
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(2, mp_context=context, initializer=start, initargs=(os.getpid(),)) as pool:
        found = list(pool.map(parts, [1, 2, 3]))
    print("sum", sum(n for n, _ in found), "of", all(other for _, other in found))
