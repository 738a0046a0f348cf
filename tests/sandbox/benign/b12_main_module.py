# KIND: benign SEVERITY: must CLASS: benign EXPECT_OUT: Point(x=1)_Point(x=1)_b12_line
import dataclasses
import pickle
import sys
import traceback


@dataclasses.dataclass
class Point:
    x: int


def fail():
    raise ValueError("b12 line")


again = pickle.loads(pickle.dumps(Point(1)))
try:
    fail()
except ValueError:
    shown = traceback.format_exc()
assert __name__ == "__main__" and sys.modules["__main__"].Point is Point and len(sys.argv) == 1
assert 'raise ValueError("b12 line")' in shown, shown
print(Point(1), again, "b12 line")
