# KIND: benign SEVERITY: should CLASS: benign EXPECT_OUT: both_done
import asyncio


async def main():
    process = await asyncio.create_subprocess_exec("/bin/echo", "both", stdout=asyncio.subprocess.PIPE)
    out, _ = await process.communicate()
    loop = asyncio.get_running_loop()
    print(out.decode().strip(), await loop.run_in_executor(None, lambda: "done"))


asyncio.run(main())
