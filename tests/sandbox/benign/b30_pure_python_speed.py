# KIND: benign SEVERITY: must CLASS: benign EXPECT_OUT: 41538
import array
import resource

LIMIT = 500_000
sieve = array.array("b", [1]) * LIMIT
for n in range(2, int(LIMIT**0.5) + 1):
    if sieve[n]:
        sieve[n * n :: n] = array.array("b", [0]) * len(range(n * n, LIMIT, n))
assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] >= 64
print(sum(sieve) - 2)
