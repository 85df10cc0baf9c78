"""A copy of the checkout whose front end is built anew, as by whoever has only the sources."""

import shutil

import pytest
from support.distributions import LEFT_OUT, ROOT, Built, build

COMMIT = "0123456789abcdef0123456789abcdef01234567"


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    # Not in the checkout: a build there writes its commit, which other tests read.
    sources, out = tmp_path_factory.mktemp("sources") / "medamad", tmp_path_factory.mktemp("dist")
    shutil.copytree(ROOT, sources, ignore=shutil.ignore_patterns("frontend.sha256", *LEFT_OUT))
    shutil.copyfile(ROOT / ".gitignore", sources / ".gitignore")
    (sources / "packaging/commit.txt").write_text(f"{COMMIT}\n", "ascii")
    build(sources, out)
    return Built(sources, out, COMMIT)
