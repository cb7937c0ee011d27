"""Type stubs of the package, from the records: python -m shardplan.stubs FILE.pyi"""

import re
import sys

from . import _core, commands, keys

# `list` is a function of the package: types are written with List.
_HEAD = '''# Made by shardplan.stubs of the records of commands and keys.
from typing import Any, Callable, Iterable, Iterator, List, Literal, Mapping, Optional, Sequence, Union
from os import PathLike

__version__: str

class Error(Exception): ...

class InputError(Error, ValueError):
    file: str
    line: int
    column: int
    wrong: str
    remedy: str

class NoAnswer(Error): ...
class InternalError(Error, RuntimeError): ...

class Record(dict[str, Any]):
    def __getattr__(self, name: str) -> Any: ...

class Result:
    status: int
    warnings: List[str]
    json: bytes
    interrupted: bool
    best: Optional[Record]
    def __getattr__(self, name: str) -> Any: ...
    def __getitem__(self, key: Any) -> Any: ...
    def __bool__(self) -> bool: ...
    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[Any]: ...
    def to_dict(self) -> Any: ...
    def rows(self) -> List[dict[str, Any]]: ...
    def to_pandas(self) -> Any: ...
    def report(self, format: str = ...) -> str: ...
    def save(self, file: Union[str, PathLike[str]]) -> None: ...

_File = Union[str, PathLike[str]]
_Settings = Union[str, Sequence[str], Mapping[str, Any]]
_Progress = Union[None, bool, Callable[[float, int, int], object]]

def key_help(name: str) -> str: ...
'''


def _type_of(allowed):
    """A key's type by what it may be, in the words of its record."""
    words = allowed.removesuffix("; required")
    if words.startswith("true, false"):
        return "bool" if words == "true, false" else "Union[bool, str]"
    if re.match(r"[0-9.,e+-]+ to [0-9.,e+-]+", words):
        return "Union[int, float, str]"
    if re.fullmatch(r"[a-z0-9_.-]+(, [a-z0-9_.-]+)+", words):
        return f"Literal[{', '.join(repr(word) for word in words.split(', '))}]"
    return "str" if words == "text" else "Any"


def _class(part):
    name = part.__name__
    lines = [f"\nclass {name}:"]
    helps = keys._HELP
    parameters = []
    for key in part._keys:
        allowed = helps.get(f"{part._prefix}.{key}", ("", ""))[0]
        kind = _type_of(allowed) if allowed else "Any"
        lines.append(f"    {key}: {kind}")
        parameters.append(f"{key}: {kind} = ...")
    named = [word for word in parameters if not word.startswith("base:")]
    first = "base: Any = ..., " if len(named) < len(parameters) else ""
    lines.append(f"    def __init__(self, {first}*, {', '.join(named)}) -> None: ...")
    lines.append("    def to_dict(self) -> dict[str, Any]: ...")
    return lines


def _flag_type(flag):
    if not flag["value"]:
        return "bool"
    if flag["name"] in ("set", "with"):
        return "_Settings"
    if flag["words"]:
        return f"Literal[{', '.join(repr(word) for word in flag['words'].split())}]"
    return "Union[str, int, float, Sequence[str], PathLike[str]]"


_PROGRESS = "progress: _Progress = ..., "
_OWN = _PROGRESS + "page: bool = ..., "  # of the commands that take a scenario and have a page


def _function(name, command, first, own=_OWN):
    flags = [f"{flag['name'].replace('-', '_')}{'_' if flag['name'] == 'with' else ''}: "
             f"Optional[{_flag_type(flag)}] = ..."
             for flag in commands._FLAGS[command].values()
             if flag["name"] not in commands._TAKEN and flag["name"] not in ("over", "to")]
    return f"def {name}({first}, {own}{', '.join(flags)}) -> Result: ..."


def text():
    lines = [_HEAD]
    for part in (keys.Model, keys.Cluster, keys.Training, keys.Plan, keys.Search, keys.Serving,
                 keys.Scenario):
        lines += _class(part)
    lines.append("\n_Scenario = Union[str, PathLike[str], Mapping[str, Any], Scenario]\n")
    for name in ("plan", "evaluate", "explain", "simulate"):
        lines.append(_function(name, name, "scenario: _Scenario, *"))
    lines.append(_function("sweep", "sweep", "scenario: _Scenario, over: Union[str, Sequence[str], "
                                             "Mapping[str, Iterable[Any]]], *"))
    lines.append(_function("compare", "compare", "*scenarios: _Scenario"))
    lines.append(_function("export", "export", "scenario: _Scenario, to: str, *", ""))
    lines.append(_function("import_job", "import", "kind: str, source: _File, *", ""))
    lines.append(_function("validate", "validate", "*evidence: _File", _PROGRESS))
    lines.append(_function("list", "list", "kind: str, *words: str", ""))
    lines.append("def evaluate_many(scenario: _Scenario, *, threads: Optional[int] = ..., set: _Settings = ..., "
                 "config_path: Sequence[_File] = ..., progress: _Progress = ..., "
                 "**columns: Any) -> dict[str, Any]: ...\n")
    return "\n".join(lines)


if __name__ == "__main__":
    with open(sys.argv[1], "w", encoding="utf-8") as out:
        out.write(text())
