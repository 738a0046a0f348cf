# KIND: benign SEVERITY: should CLASS: benign EXPECT_OUT: [0,_7]_or_a_clear_error
from multiprocessing import Process
from multiprocessing.shared_memory import SharedMemory


def write(name):
    block = SharedMemory(name)
    block.buf[1] = 7
    block.close()


if __name__ == "__main__":
    try:
        block = SharedMemory(create=True, size=1000)
    except OSError as e:
        assert e.strerror, e
    else:
        process = Process(target=write, args=(block.name,))
        process.start()
        process.join()
        assert list(block.buf[:2]) == [0, 7]
        block.close()
        block.unlink()
    print("[0, 7] or a clear error")
