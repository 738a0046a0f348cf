# KIND: benign SEVERITY: must CLASS: benign EXPECT_OUT: {3:_2,_5:_1}_exp(x)_True
import sympy as sp

x, n = sp.symbols("x n")
f = sp.Function("f")
solution = sp.dsolve(sp.Eq(f(x).diff(x), f(x)), f(x)).rhs
half = sp.integrate(sp.exp(-(x**2)), (x, 0, sp.oo)) == sp.sqrt(sp.pi) / 2
assert sp.limit(sp.sin(x) / x, x, 0) == 1 and sp.series(sp.cos(x), x, 0, 3).removeO() == 1 - x**2 / 2
assert sp.summation(1 / n**2, (n, 1, sp.oo)) == sp.pi**2 / 6 and sp.isprime(2**127 - 1)
assert sp.lambdify(x, x**2)(3) == 9 and sp.latex(sp.Rational(1, 2)) == r"\frac{1}{2}"
print(sp.factorint(45), str(solution).replace("C1*", ""), half)
