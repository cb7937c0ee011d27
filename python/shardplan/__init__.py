"""Shardplan: how to train, fine-tune and serve transformers on many accelerators.

    import shardplan
    found = shardplan.plan("llama-3-70b", gpus="64xh100")
    found.best.plan.tp, found.best.time.iteration_s
    found.to_pandas(); found.save("report.html")

Every function is a command of `shardplan`, by the same code in this process: names, defaults and
bytes are the command's. A scenario is a name, a file, YAML text, a dict, or a `Scenario` of typed
parts. Keyword arguments are the command's flags (`time_limit=60` is --time-limit 60); `set` takes a
dict. Wrong input is an `InputError` with its place and remedy. Threads may call at the same time.
"""

import os as _os

from . import _core

__version__ = _core.version


class Error(Exception):
    """What all exceptions of this package are."""


class InputError(Error, ValueError):
    """Bad input: `file`, `line` and `column` (0: not known), what is `wrong`, and the `remedy`."""

    def __init__(self, message, file="", line=0, column=0, wrong="", remedy=""):
        super().__init__(message)
        self.file, self.line, self.column = file, line, column
        self.wrong, self.remedy = wrong, remedy

    def __reduce__(self):
        return type(self), (self.args[0], self.file, self.line, self.column, self.wrong, self.remedy)


class NoAnswer(Error):
    """The question has no answer that the format asked for could hold."""


class InternalError(Error, RuntimeError):
    """A fault of Shardplan: please report it."""


_core.set_errors(InputError, InternalError)
_own_configs = _os.path.join(_os.path.dirname(_os.path.abspath(__file__)), "configs")
if _os.path.isdir(_own_configs):
    _core.set_configs(_own_configs)

from .commands import (  # noqa: E402
    compare, evaluate, evaluate_many, explain, export, import_job, list_ as list, plan, simulate, sweep,
    validate)
from .keys import Cluster, Model, Plan, Scenario, Search, Serving, Training, key_help  # noqa: E402
from .results import Record, Result  # noqa: E402

__all__ = [
    "Cluster", "Error", "InputError", "InternalError", "Model", "NoAnswer", "Plan", "Record",
    "Result", "Scenario", "Search", "Serving", "Training", "compare", "evaluate", "evaluate_many",
    "explain", "export", "import_job", "key_help", "list", "plan", "simulate", "sweep", "validate"]
