# KIND: benign SEVERITY: should CLASS: benign EXPECT_OUT: 42_from_spawn,_then_3_and_ValueError
import multiprocessing
import sys


class Point:
    def __init__(self, x):
        self.x = x


def answer(questions, answers, started):
    started.set()
    answers.put(Point(2 * questions.get().x))


def fail(n):
    raise ValueError(n)


if __name__ == "__main__":
    multiprocessing.set_start_method("spawn")
    questions, answers, started = multiprocessing.Queue(), multiprocessing.SimpleQueue(), multiprocessing.Event()
    process = multiprocessing.Process(target=answer, args=(questions, answers, started))
    process.start()
    started.wait()
    questions.put(Point(21))
    value = answers.get().x
    process.join()
    other = multiprocessing.Process(target=sys.exit, args=(3,))
    other.start()
    other.join()
    with multiprocessing.Pool(1) as pool:
        try:
            pool.map(fail, [1])
        except ValueError as error:
            print(value, "from spawn, then", other.exitcode, "and", type(error).__name__)
