"""Typed parts of a scenario, made of the records by which its keys are read."""

import difflib

from . import _core

_HELP = {}
for _name, _allowed, _help in _core.keys():
    _HELP.setdefault(_name, (_allowed, _help))


def key_help(name):
    """What a key is and what it may be: key_help("plan.tp")."""
    if name not in _HELP:
        near = difflib.get_close_matches(name, _HELP, 1)
        raise KeyError(f"{name}; did you mean {near[0]}?" if near else name)
    allowed, help_ = _HELP[name]
    return f"{name}: {help_}. {allowed}"


def top_keys(prefix):
    """The keys of a part, those of maps in it by the map's name."""
    return list(dict.fromkeys(
        name[len(prefix) + 1:].split(".")[0].split("[")[0]
        for name in _HELP if name.startswith(prefix + ".")))


def _document(prefix):
    lines = []
    for name, (allowed, help_) in _HELP.items():
        if name.startswith(prefix + "."):
            lines.append(f"    {name[len(prefix) + 1:]}: {help_}. {allowed}")
    return "\n".join(lines)


def _plain(value):
    if isinstance(value, Part):
        return value.to_dict()
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return value.item() if hasattr(value, "item") and not hasattr(value, "__len__") else value


class Part:
    """Keys with values, of those that the part may have. A key that is not given is absent."""

    _prefix = ""
    _keys = ()

    def __init__(self, base=None, **keys):
        if base is not None:  # Model("llama-3-8b", layers=16)
            self.base = base
        for key, value in keys.items():
            setattr(self, key, value)

    def __setattr__(self, key, value):
        if key not in self._keys:
            near = difflib.get_close_matches(key, self._keys, 1)
            raise AttributeError(
                f"{type(self).__name__} has no key {key!r}"
                + (f"; did you mean {near[0]!r}?" if near else ""))
        super().__setattr__(key, value)

    def to_dict(self):
        """As a scenario has it, in the order of the records."""
        return {key: _plain(getattr(self, key)) for key in self._keys if key in self.__dict__}

    def __eq__(self, other):
        return type(self) is type(other) and self.to_dict() == other.to_dict()

    def __repr__(self):
        return f"{type(self).__name__}({', '.join(f'{k}={v!r}' for k, v in self.to_dict().items())})"


def _part(name, prefix, sentence, more=()):
    keys = tuple(dict.fromkeys((*more, *top_keys(prefix))))
    return type(name, (Part,), {
        "__doc__": f"{sentence}\n\n{_document(prefix)}", "__module__": "shardplan",
        "_prefix": prefix, "_keys": keys,
        "__annotations__": {key: object for key in keys}})


Model = _part("Model", "model", "A model. `base`: a name whose keys these override.", ("base",))
Cluster = _part("Cluster", "cluster", "A cluster. `base`: a name whose keys these override.", ("base",))
Training = _part("Training", "training", "What is trained.")
Plan = _part("Plan", "plan", "A parallel plan; a missing key is searched by `plan`.")
Search = _part("Search", "search", "Limits of the search.")
Serving = _part("Serving", "serving", "What is served.")
Scenario = type("Scenario", (Part,), {
    "__doc__": "A scenario of parts: each a name, a dict or a typed part.",
    "__module__": "shardplan",
    "_keys": ("workload", "model", "cluster", "training", "serving", "plan", "search")})
