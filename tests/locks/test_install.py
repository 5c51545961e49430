"""Packages are installed by the hashes of a lock, by uv or by pip, and not at all with other files."""

from __future__ import annotations

import base64
import hashlib
import os
import shutil
import subprocess
import venv
import zipfile
from pathlib import Path

import pytest


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of an environment that has pip alone."""
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, with_pip=True, symlinks=True)
    return folder / "bin" / "python"


def wheel(folder: Path, name: str, version: str = "1.0", files: dict[str, str] | None = None) -> str:
    """Write a wheel into a folder; returns its lines in a lock."""
    metadata = f"{name}-{version}.dist-info"
    contents = {
        **(files or {f"{name}.py": ""}),
        f"{metadata}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
        f"{metadata}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    digests = {
        path: base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()
        for path, text in contents.items()
    }
    record = [f"{path},sha256={digest},{len(contents[path])}" for path, digest in digests.items()]
    contents[f"{metadata}/RECORD"] = "\n".join([*record, f"{metadata}/RECORD,,", ""])
    place = folder / f"{name}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(place, "w") as archive:
        for path, text in contents.items():
            archive.writestr(path, text)
    return f"{name}=={version} \\\n    --hash=sha256:{hashlib.sha256(place.read_bytes()).hexdigest()}\n"


def install(
    environment: Path, folder: Path, repository: Path, *locks: str
) -> subprocess.CompletedProcess[str]:
    """Run the repository's installer with the locks of a folder, whose wheels are all that pip is offered."""
    (folder / "locks").mkdir(exist_ok=True)
    shutil.copy(repository / "locks" / "install.py", folder / "locks")
    settings = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(folder), "PIP_CONFIG_FILE": os.devnull}
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("PIP_", "UV_"))}
    return subprocess.run(
        [environment, folder / "locks" / "install.py", *locks],
        env={**inherited, **settings}, capture_output=True, text=True, check=False,
    )  # fmt: skip


def there(environment: Path, module: str) -> bool:
    return not subprocess.run(
        [environment, "-c", f"import {module}"], capture_output=True, check=False
    ).returncode


@pytest.mark.slow
def test_without_uv_pip_installs_and_refuses_a_file_with_another_hash(
    environment: Path, tmp_path: Path, repository: Path
) -> None:
    locks = tmp_path / "locks"
    locks.mkdir()
    (locks / "uv.txt").write_text(f"uv==0.13.9 \\\n    --hash=sha256:{'0' * 64}\n")
    (locks / "run.txt").write_text(wheel(tmp_path, "honest"))
    done = install(environment, tmp_path, repository, "run.txt")
    assert done.returncode == 0 and there(environment, "honest"), done.stderr
    assert "uv is not to be had here; pip installs" in done.stderr

    (locks / "run.txt").write_text(wheel(tmp_path, "replaced"))
    wheel(tmp_path, "replaced", files={"replaced.py": "print('another file of the same name')\n"})
    done = install(environment, tmp_path, repository, "run.txt")
    assert done.returncode == 1 and not there(environment, "replaced")
    assert "run.txt: not installed. Only files with the hashes of locks/ are accepted" in done.stderr
    assert "Traceback" not in done.stderr

    (locks / "run.txt").write_text("replaced==1.0\n")
    done = install(environment, tmp_path, repository, "run.txt")
    assert done.returncode == 1 and not there(environment, "replaced"), "a line without a hash is refused"


@pytest.mark.slow
def test_uv_gets_the_settings_of_pip_and_where_it_fails_pip_tries_with_the_same_hashes(
    environment: Path, tmp_path: Path, repository: Path
) -> None:
    """A program of uv's name notes what it was told and fails."""
    told = tmp_path / "told"
    program = (
        "import os, pathlib, sys\n"
        f"with pathlib.Path({str(told)!r}).open('a') as file:\n"
        "    print(os.environ['UV_FIND_LINKS'], os.environ['UV_NO_INDEX'], *sys.argv[1:], file=file)\n"
        "sys.exit(1)\n"
    )
    locks = tmp_path / "locks"
    locks.mkdir()
    (locks / "uv.txt").write_text(
        wheel(tmp_path, "uv", files={"uv/__init__.py": "", "uv/__main__.py": program})
    )
    (locks / "torch-cpu.txt").write_text(f"torch==1.0+cpu \\\n    --hash=sha256:{'0' * 64}\n")
    (locks / "torch-cuda.txt").write_text(wheel(tmp_path, "torch"))
    done = install(environment, tmp_path, repository, "torch")
    assert done.returncode == 0 and there(environment, "torch"), done.stderr
    assert "uv failed; pip tries the same files" in done.stderr
    lines = told.read_text().splitlines()
    assert all(line.startswith(f"{tmp_path} 1 pip install") and "--require-hashes" in line for line in lines)
    assert "torch-cpu.txt" in lines[0] and "torch-cuda.txt" in lines[-1]
