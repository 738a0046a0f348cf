# KIND: benign SEVERITY: must CLASS: benign EXPECT_OUT: ['a.txt',_'sub']_hello_True
import os
import tempfile

with open("a.txt", "w") as file:
    file.write("hello")
os.makedirs("sub/deeper")
os.rename("sub/deeper", "sub/deep")
with tempfile.NamedTemporaryFile("w+") as file, tempfile.TemporaryDirectory() as folder:
    file.write("x")
    here = os.path.isdir(folder)
names = sorted(name for name in os.listdir() if name in ("a.txt", "sub"))
print(names, open("a.txt").read(), here)
