"""The wheel, with our jars in it: `python -m tools.wheel` puts it into dist/."""

import shutil
import sys
from pathlib import Path

from espha.pipeline.jars import OWN_JARS, own_folder
from tools import ROOT, jars
from tools.offline_cluster import command
from tools.offline_cluster.say import program, step


def main() -> None:
    """Compile our jars, place them where the package's data are, build, and remove them again."""
    own = [jars.directory(profile) / name for profile, name in OWN_JARS.items()]
    place = ROOT / "engine" / "espha" / own_folder().relative_to(own_folder().parents[1])
    target = ROOT / "dist"
    with step("building the wheel"):
        try:
            place.mkdir(exist_ok=True)
            for jar in own:
                shutil.copy2(jar, place)
            uv = Path(sys.prefix) / "bin" / "uv"
            options = ("--wheel", "--quiet", "--system-certs", "--out-dir", target)
            command.run(uv, "build", *options, ROOT)
        finally:
            shutil.rmtree(place)  # a checkout uses what it has compiled, never an old jar
            for left in (ROOT / "build" / "lib", *(ROOT / "build").glob("bdist.*")):
                shutil.rmtree(left, ignore_errors=True)
    for wheel in sorted(target.glob("espha-*.whl")):
        print(wheel)


if __name__ == "__main__":
    program(main)
