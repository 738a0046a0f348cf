# KIND: benign SEVERITY: must CLASS: benign EXPECT_OUT: temporary_files_work
import glob
import os
import pathlib
import shutil
import tarfile
import tempfile
import zipfile

with tempfile.TemporaryDirectory() as folder:
    path = pathlib.Path(folder, "a", "b.txt")
    path.parent.mkdir()
    path.write_text("x" * 100_000, encoding="utf-8")
    os.link(path, path.with_name("hard"))
    os.symlink("b.txt", path.with_name("soft"))
    shutil.copytree(folder, folder + "-copy")
    with zipfile.ZipFile("a.zip", "w", zipfile.ZIP_DEFLATED) as file:
        file.write(path, "b.txt")
    with tarfile.open("a.tar.gz", "w:gz") as file:
        file.add(folder, "all")
    os.utime(path, (1, 1))
    os.chmod(path, 0o600)
    copied = glob.glob(folder + "-copy/**/*", recursive=True)
    assert len(copied) == 4, copied
shutil.rmtree(folder + "-copy")
with tempfile.SpooledTemporaryFile(10) as spooled, tempfile.TemporaryFile() as file:
    spooled.write(b"y" * 100)
    file.truncate(1000)
    os.posix_fallocate(file.fileno(), 0, 2000)
    assert os.fstat(file.fileno()).st_size == 2000
fd, name = tempfile.mkstemp()
os.close(fd)
os.replace(name, "c")
assert zipfile.ZipFile("a.zip").testzip() is None and not os.path.exists(folder)
print("temporary files work")
