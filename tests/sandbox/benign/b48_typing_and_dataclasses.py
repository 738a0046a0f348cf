# KIND: benign SEVERITY: must CLASS: benign EXPECT_OUT: Shape(name='square',_points=[(0,_1)])_Colour.RED_Box[int]
import abc
import copy
import dataclasses
import enum
import pickle
import typing
from typing import Any, Generic, NamedTuple, Protocol, TypedDict, TypeVar

T = TypeVar("T")


class Colour(enum.Enum):
    RED = enum.auto()


class Point(NamedTuple):
    x: int
    y: int = 1


class Options(TypedDict, total=False):
    size: int


class Drawable(Protocol):
    def draw(self) -> str: ...


class Base(abc.ABC):
    @property
    @abc.abstractmethod
    def area(self) -> float: ...


@dataclasses.dataclass(order=True)
class Shape(Base):
    name: str
    points: list[Point] = dataclasses.field(default_factory=list)

    @property
    def area(self) -> float:
        return 1.0


class Box(Generic[T]):
    def __init__(self, item: T) -> None:
        self.item = item


shape = Shape("square", [tuple(Point(0))])
assert pickle.loads(pickle.dumps(shape)) == copy.deepcopy(shape) and dataclasses.asdict(shape)["name"] == "square"
assert typing.get_type_hints(Shape)["name"] is str and Options(size=1)["size"] == 1
assert isinstance(shape, Base) and typing.get_args(dict[str, Any]) == (str, Any)
print(shape, Colour.RED, str(Box[int]).rpartition(".")[2])
