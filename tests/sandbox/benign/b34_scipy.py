# KIND: benign SEVERITY: must CLASS: benign EXPECT_OUT: scipy_works
import importlib.util

if importlib.util.find_spec("scipy"):
    import numpy as np
    from scipy import integrate, linalg, optimize, sparse, stats

    assert abs(integrate.quad(np.sin, 0, np.pi)[0] - 2) < 1e-9
    assert abs(optimize.brentq(lambda x: x * x - 2, 0, 2) - 2**0.5) < 1e-9
    assert linalg.inv(np.eye(3)).trace() == 3 and sparse.eye(4).nnz == 4
    assert abs(stats.norm.cdf(0) - 0.5) < 1e-12
print("scipy works")
