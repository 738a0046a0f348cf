# KIND: benign SEVERITY: should CLASS: benign EXPECT_OUT: shared_[1,_2]_or_an_error
import multiprocessing


def work(found, lock):
    with lock:
        found.append(2)


if __name__ == "__main__":
    try:
        manager = multiprocessing.Manager()
    except (OSError, EOFError):  # its server needs a Unix socket
        pass
    else:
        with manager:
            found = manager.list([1])
            lock = manager.Lock()
            process = multiprocessing.Process(target=work, args=(found, lock))
            process.start()
            process.join()
            assert list(found) == [1, 2]
    print("shared [1, 2] or an error")
