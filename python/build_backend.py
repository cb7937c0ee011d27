"""Builds the wheel by CMake alone (PEP 517): `pip install .` from a clone, without a network.

Name and version are CMakeLists.txt's; what goes into the wheel is the component `python` of the
installation, of libraries as archives (the preset `wheel`), and the stubs made of its records.
"""

import base64
import hashlib
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
import zipfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
NEEDED = "cmake ninja-build g++ libyaml-cpp-dev libfmt-dev nlohmann-json3-dev " \
         "libboost-program-options-dev pybind11-dev python3-dev"


def _version():
    with open(os.path.join(ROOT, "CMakeLists.txt"), encoding="utf-8") as text:
        return re.search(r"project\(shardplan VERSION ([0-9.]+)", text.read()).group(1)


def _call(*words, **more):
    try:
        subprocess.run(words, check=True, stdout=subprocess.DEVNULL, **more)
    except FileNotFoundError:
        raise SystemExit(f"{words[0]} is missing; Debian's packages: apt-get install {NEEDED}") from None
    except subprocess.CalledProcessError as fault:
        raise SystemExit(f"{' '.join(words)} failed; Debian's packages: {NEEDED}") from fault


def _tag():
    version = f"cp{sys.version_info.major}{sys.version_info.minor}"
    return f"{version}-{version}-{re.sub(r'[-.]', '_', sysconfig.get_platform())}"


def _metadata():
    return (f"Metadata-Version: 2.1\nName: shardplan\nVersion: {_version()}\n"
            "Summary: How to train and serve transformers on many accelerators\n"
            "License: see LICENSE\nRequires-Python: >=3.9\n"
            "Provides-Extra: all\nRequires-Dist: pandas; extra == 'all'\n"
            "Requires-Dist: numpy; extra == 'all'\n")


def _build(stage):
    build = os.environ.get("SHARDPLAN_BUILD", os.path.join(ROOT, "build", "static"))
    _call("cmake", "--preset", "wheel", "-B", build, f"-DPython3_EXECUTABLE={sys.executable}",
          cwd=ROOT)
    _call("cmake", "--build", build, "--target", "shardplan_python")
    _call("cmake", "--install", build, "--component", "python", "--prefix", stage, "--strip")
    _call(sys.executable, "-m", "shardplan.stubs", os.path.join(stage, "shardplan", "__init__.pyi"),
          cwd=stage)
    for folder, _, _ in os.walk(stage):
        if os.path.basename(folder) == "__pycache__":
            shutil.rmtree(folder)


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    name = f"shardplan-{_version()}"
    wheel = f"{name}-{_tag()}.whl"
    with tempfile.TemporaryDirectory() as stage:
        _build(stage)
        info = os.path.join(stage, f"{name}.dist-info")
        os.mkdir(info)
        shutil.copy(os.path.join(ROOT, "LICENSE"), info)
        for file, text in (
                ("METADATA", _metadata()),
                ("WHEEL", f"Wheel-Version: 1.0\nGenerator: shardplan\nRoot-Is-Purelib: false\n"
                          f"Tag: {_tag()}\n")):
            with open(os.path.join(info, file), "w", encoding="utf-8") as out:
                out.write(text)
        _pack(stage, os.path.join(wheel_directory, wheel), f"{name}.dist-info/RECORD")
    return wheel


def _pack(stage, wheel, record):
    """All files in one order, with one date, so that equal contents are equal bytes."""
    lines = []
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as packed:
        def add(name, data):
            entry = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = 0o644 << 16
            packed.writestr(entry, data)

        for folder, folders, files in os.walk(stage):
            folders.sort()
            for file in sorted(files):
                path = os.path.join(folder, file)
                name = os.path.relpath(path, stage).replace(os.sep, "/")
                with open(path, "rb") as source:
                    data = source.read()
                digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
                lines.append(f"{name},sha256={digest},{len(data)}\n")
                add(name, data)
        add(record, "".join([*lines, f"{record},,\n"]))


def build_sdist(sdist_directory, config_settings=None):
    name = f"shardplan-{_version()}"
    files = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True)
    with tarfile.open(os.path.join(sdist_directory, f"{name}.tar.gz"), "w:gz") as packed:
        for file in files.stdout.decode().split("\0"):
            if file:
                packed.add(os.path.join(ROOT, file), f"{name}/{file}")
    return f"{name}.tar.gz"
