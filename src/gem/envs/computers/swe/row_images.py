"""Images with the repositories of rows, for containers of podman or docker.

An image has the repository in /testbed, at base_commit, with what its tests need, as the published ones do. They are
local images: no registry is asked. Names are mapped as in gem.envs.computers.containers.images.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from gem.envs.computers.containers.images import map_image
from gem.envs.computers.swe.row_verify import FOLDER, TO_REPOSITORY
from gem.envs.computers.swe.rows import SweRow
from gem.errors import BadValue, SandboxError
from gem.sandbox import Limits
from gem.sandbox.containers.engine import find_engine
from gem.sandbox.containers.machine import ContainerMachine
from gem.sandbox.machine import MachineFiles

AUTO = "auto"
LIMITS = Limits(wall_s=60, memory_bytes=4 << 30, processes=2048, disk_bytes=1 << 30, output_bytes=8_000)
# As the agent must not see later commits, the repository is made again: from the files that git knows, ignored or not,
# and the others that it does not ignore, such as those of submodules, and what a build has left.
SETUP = """\
cd {folder}
if [ -e .git ]; then
  git -c safe.directory=* rev-parse -q --verify '{commit}^{{commit}}' || {{ echo 'no commit {commit}'; exit 1; }}
  git -c safe.directory=* ls-files -s -z | sed -z -n '/^160000 /!s/^[^\t]*\t//p' > /tmp/gem.files
  find . -name .git -prune -exec rm -rf {{}} +
fi
git init -q -b main
if [ -e /tmp/gem.files ]; then
  git update-index --add --remove -z --stdin < /tmp/gem.files
  git add -A
  rm /tmp/gem.files
else
  git add -A -f
fi
{to_repository}"""


@dataclass(frozen=True)
class RowImages:
    """Where the images of rows are.

    Args:
        name: of an image, in which "{instance_id}" stands for that of the row in lower case; "auto" for the names that
            SWE-bench and SWE-Gym publish.
        image_map: see gem.envs.computers.containers.images.
        engine: "podman", "docker", or "auto" for the one that is installed.

    Raises:
        BadValue: the name has other fields.
    """

    name: str
    image_map: Mapping[str, str]
    engine: str

    def __post_init__(self) -> None:
        try:
            self.name.format(instance_id="")
        except (KeyError, IndexError, ValueError, AttributeError) as e:
            raise BadValue(f"image must be a name with at most the field {{instance_id}}, got {self.name!r}") from e

    def image_of(self, row: SweRow) -> str:
        """Return the local name of the image of a row. Raises SandboxError if the engine does not have it."""
        names = dict.fromkeys(map_image(name, self.image_map)[0] for name in self._names(row.instance_id.lower()))
        engine = find_engine(self.engine)
        for name in names:
            if engine.has(name):
                return name
        raise SandboxError(
            f"{row.instance_id} needs the image {' or '.join(names)}, which {engine.name} does not have; pull it, or "
            "name another one in image=, image_map= or GEM_IMAGE_MAP"
        )

    def _names(self, instance_id: str) -> Iterator[str]:
        if self.name != AUTO:
            yield self.name.format(instance_id=instance_id)
            return
        for owner, between in (("swebench", "_1776_"), ("xingyaoww", "_s_")):  # Docker Hub has no names with "__"
            yield f"{owner}/sweb.eval.x86_64.{instance_id.replace('__', between)}"

    def start(self, image: str, files: MachineFiles, limits: Limits) -> ContainerMachine:
        return ContainerMachine(find_engine(self.engine), image, limits=limits, files=files, folder=FOLDER)

    def restored(self, state: Mapping[str, object], limits: Limits) -> ContainerMachine:
        """Start a machine with a state. Raises BadValue if the state is gone."""
        return ContainerMachine(find_engine(self.engine), "", limits=limits, state=state)


def setup_of(row: SweRow) -> str:
    """Return the script that makes /testbed a repository with one commit."""
    return SETUP.format(folder=FOLDER, commit=row.base_commit, to_repository=TO_REPOSITORY)
