# KIND: benign SEVERITY: must CLASS: benign EXPECT_OUT: 30103_0.1428571428571428571428571429_7/6_True
import cmath
import decimal
import fractions
import math
import sys

sys.set_int_max_str_digits(0)
decimal.getcontext().prec = 28
third = decimal.Decimal(2).sqrt().quantize(decimal.Decimal("1.000"), rounding=decimal.ROUND_HALF_UP)
assert third == decimal.Decimal("1.414") and pow(3, -1, 10**9 + 7) * 3 % (10**9 + 7) == 1
assert math.isqrt(10**200) == 10**100 and int("7" * 20_000) % 7 == 0 and abs(cmath.exp(1j * math.pi) + 1) < 1e-9
print(
    len(str(2**100_000)),
    decimal.Decimal(1) / 7,
    fractions.Fraction(1, 2) + fractions.Fraction(2, 3),
    math.factorial(3000) % 3001 == 3000,
)
