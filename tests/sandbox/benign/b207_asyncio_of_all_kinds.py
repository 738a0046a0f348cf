# KIND: benign SEVERITY: should CLASS: benign EXPECT_OUT: 3_answers
import asyncio
import concurrent.futures
import sys


def square(n):
    return n * n


async def main():
    loop = asyncio.get_running_loop()
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", "print(4)", stdout=-1)
    out, _ = await process.communicate()
    with concurrent.futures.ProcessPoolExecutor(1) as pool:
        squared = await loop.run_in_executor(pool, square, 2)
    slept = await asyncio.to_thread(square, 2)
    print([int(out), squared, slept].count(4), "answers")


asyncio.run(main())
