# KIND: benign SEVERITY: should CLASS: benign EXPECT_OUT: maps_and_ctypes_work
import array
import ctypes
import gc
import mmap
import os
import struct
import weakref

with open("data", "w+b") as file:
    file.truncate(1 << 20)
    with mmap.mmap(file.fileno(), 0) as view:
        view[:5] = b"hello"
        view.flush()
        view.madvise(mmap.MADV_SEQUENTIAL)
        assert view.find(b"lo") == 3
    assert os.pread(file.fileno(), 5, 0) == b"hello" and os.pwrite(file.fileno(), b"J", 0) == 1
    os.fsync(file.fileno())
    os.sendfile(os.open("copy", os.O_WRONLY | os.O_CREAT), file.fileno(), 0, 100)
libc = ctypes.CDLL(None)
compare = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_int), ctypes.POINTER(ctypes.c_int))
numbers = (ctypes.c_int * 4)(3, 1, 4, 2)
libc.qsort(numbers, 4, ctypes.sizeof(ctypes.c_int), compare(lambda a, b: a[0] - b[0]))
assert list(numbers) == [1, 2, 3, 4] and libc.strlen(b"four") == 4
assert struct.unpack("<I", struct.pack("<I", 7)) == (7,) and array.array("d", [1.5]).tobytes()


class Node:
    pass


node = Node()
node.self = node
gone = weakref.ref(node)
del node
gc.collect()
assert gone() is None and len(os.urandom(16)) == 16
print("maps and ctypes work")
