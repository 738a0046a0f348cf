# KIND: benign SEVERITY: must CLASS: benign EXPECT_OUT: numpy_works
import numpy as np

rng = np.random.default_rng(0)
a = rng.standard_normal((600, 600))
x = np.linalg.solve(a, a @ np.ones(600))
values, vectors = np.linalg.eigh(a + a.T)
u, s, v = np.linalg.svd(a[:200, :100], full_matrices=False)
assert (
    np.allclose(x, 1) and np.allclose((a + a.T) @ vectors, vectors * values) and np.allclose(u * s @ v, a[:200, :100])
)
assert np.allclose(np.fft.ifft(np.fft.fft(a[0])), a[0]) and abs(np.linalg.det(np.eye(5)) - 1) < 1e-12
np.save("a.npy", a)
mapped = np.load("a.npy", mmap_mode="r")
assert mapped[599, 599] == a[599, 599] and np.convolve([1, 2], [1, 1]).tolist() == [1, 3, 2]
print("numpy works")
