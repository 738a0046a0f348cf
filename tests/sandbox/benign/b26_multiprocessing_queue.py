# KIND: benign SEVERITY: should CLASS: benign EXPECT_OUT: 6_from_another_process
import multiprocessing


def add(numbers, answers):
    answers.send(sum(numbers))


if __name__ == "__main__":
    mine, theirs = multiprocessing.Pipe()
    process = multiprocessing.get_context("fork").Process(target=add, args=([1, 2, 3], theirs))
    process.start()
    print(mine.recv(), "from another process")
    process.join()
