# KIND: benign SEVERITY: must CLASS: benign EXPECT_OUT: [0,_1,_4]_25_late_3
import asyncio
import sys


async def square(n):
    await asyncio.sleep(0.01 * (3 - n))
    return n * n


async def main():
    squares = await asyncio.gather(*map(square, range(3)))
    command = [sys.executable, "-c", "print(int(input()) ** 2)"]
    pipe = asyncio.subprocess.PIPE
    processes = [await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe) for _ in range(3)]
    outs = [(await process.communicate(b"5\n"))[0] for process in processes]
    shell = await asyncio.create_subprocess_shell("exit 3")
    queue = asyncio.Queue()
    asyncio.get_running_loop().call_later(0.01, queue.put_nowait, "late")
    word = await asyncio.wait_for(queue.get(), 5)
    assert len(set(outs)) == 1
    print(squares, int(outs[0]), word, await shell.wait())


asyncio.run(main())
