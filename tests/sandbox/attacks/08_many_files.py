# CLASS: disk   SEVERITY: must
# EXPECT: the number of files is bounded, at least by the time limit; all are removed at any depth.
import os

made = 0
try:
    while made < 400_000:
        folder = f"d{made // 1000}"
        if made % 1000 == 0:
            os.mkdir(folder)
        os.close(os.open(f"{folder}/{made}", os.O_CREAT | os.O_WRONLY))
        made += 1
except OSError as error:
    print(error)
print("made", made)
if made >= 400_000:
    print("PWNED hundreds of thousands of files")
