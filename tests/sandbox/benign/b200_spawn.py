# KIND: benign SEVERITY: should CLASS: benign EXPECT_OUT: spawned_[0,_1,_4,_9]
import multiprocessing


def square(n):
    return n * n


if __name__ == "__main__":
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        print("spawned", pool.map(square, range(4)))
