"""The commands as functions."""

import array
import contextlib
import difflib
import json
import operator
import os
import tempfile

from . import _core
from .keys import Part, _plain
from .results import Result

_FLAGS = {row["name"]: {flag["name"]: flag for flag in row["flags"]} for row in _core.commands()}
# What a function says by its own means.
_TAKEN = ("out", "format", "quiet", "color", "help", "version", "page", "list-inputs")


def _listed(words, takes):
    if not hasattr(words, "__iter__"):
        raise TypeError(f"{takes}, not {words!r}")
    return list(words)


def _json(value, **more):
    def other(one):
        raise TypeError(f"a scenario has text, numbers, lists and maps, not {one!r}")
    try:
        return json.dumps(_plain(value), default=other, **more)
    except (RecursionError, ValueError):
        raise TypeError("a scenario that contains itself has no end") from None


def _text_of(scenario):
    """The YAML of what is no name and no file; None of one that is."""
    if isinstance(scenario, (Part, dict)):
        return _json(scenario, indent=1)
    if isinstance(scenario, str) and ("\n" in scenario or ": " in scenario):
        return scenario
    return None


def _operands(scenarios):
    operands, documents = [], {}
    for scenario in scenarios:
        text = _text_of(scenario)
        if text is None:
            if not isinstance(scenario, (str, os.PathLike)):
                raise TypeError("a scenario is a name, a file, YAML text, a dict or a Scenario, not "
                                f"{type(scenario).__name__}")
            operands.append(os.fspath(scenario))
            continue
        stem = "scenario" if len(scenarios) == 1 else f"scenario-{len(documents) + 1}"
        operands.append(_core.document_name(stem))
        documents[operands[-1]] = text
    return operands, documents


def _set_words(settings):
    if isinstance(settings, str):
        return [settings]
    if isinstance(settings, dict):
        return [f"{key}={value if isinstance(value, str) else _json(value)}"
                for key, value in settings.items()]
    return _listed(settings, 'set takes {"plan.tp": 8} or "plan.tp=8"')


def _several(values):
    """One value is a list of one."""
    return [values] if isinstance(values, str) or not hasattr(values, "__iter__") else values


def _over_words(over):
    if isinstance(over, dict):
        return [f"{key}={','.join(str(_plain(value)) for value in _several(values))}"
                for key, values in over.items()]
    return [over] if isinstance(over, str) else _listed(over or (), 'over takes {"tp": [1, 2]}')


def _flag_words(command, arguments):
    """Keyword arguments as flags."""
    known = _FLAGS[command]
    words = []
    for name, value in arguments.items():
        if name in ("out", "format"):
            raise TypeError(f"{command}() has no argument {name!r}; the answer has "
                            ".save('report.html') and .report('md')")
        flag = known.get(name.rstrip("_").replace("_", "-"))
        if flag is None or flag["name"] in _TAKEN:
            names = [f.replace("-", "_") for f in known if f not in _TAKEN]
            near = difflib.get_close_matches(name, names, 1)
            raise TypeError(f"{command}() has no argument {name!r}"
                            + (f"; did you mean {near[0]!r}?" if near else ""))
        if value is None or value is False:
            continue
        word = "--" + flag["name"]
        if not flag["value"]:
            words.append(word)
        elif flag["name"] in ("set", "with"):
            for one in _set_words(value):
                words += [word, one]
        elif flag["name"] == "over":
            for one in _over_words(value):
                words += [word, one]
        else:
            for one in value if isinstance(value, (list, tuple)) else [value]:
                words += [word, os.fspath(one) if isinstance(one, os.PathLike) else str(_plain(one))]
    return words


class _Bar:
    """tqdm, where it is there, as the callback of progress."""

    def __init__(self):
        from tqdm.auto import tqdm
        self._bar = tqdm(unit=" points")

    def __call__(self, seconds, done, points):
        self._bar.total = points or None
        self._bar.n = done
        self._bar.set_postfix_str(f"{seconds:.0f} s")

    def close(self):
        self._bar.close()


@contextlib.contextmanager
def _called_back(progress):
    """The callback of progress; a bar is closed in the end."""
    if progress is True:
        try:
            bar = _Bar()
        except ImportError:
            yield None
        else:
            with contextlib.closing(bar):
                yield bar
        return
    if progress and not callable(progress):
        raise TypeError(f"progress is True, or called as progress(seconds, done, points), not {progress!r}")
    yield progress or None


def _checked(words):
    """Words and texts that the module takes: text, of Unicode and without zero bytes."""
    from . import InputError
    for word in words:
        if not isinstance(word, str):
            raise TypeError(f"{word!r} is no text, as a name, a file or a setting 'key=value' is")
        try:
            fault = "a zero byte" if "\0" in word else word.encode("utf-8") and ""
        except UnicodeEncodeError:
            fault = "what is no Unicode character"
        if fault:
            raise InputError(f"{word!r} has {fault}; leave it out", wrong=f"{word!r} has {fault}",
                             remedy="leave it out")
    return words


class _Call:
    """A command with its words, for an answer in another format of it."""

    def __init__(self, command, words, operands, documents):
        self.command, self.words = command, words
        self.operands, self.documents = operands, documents

    def answer(self, format, page=False, callback=None):
        words = [self.command, *self.words, "--format", format, "--", *self.operands]
        _checked([*words, *self.documents.values()])
        answer = _core.run(words, self.documents, page, callback)
        if answer["failure"]:
            from . import NoAnswer
            raise NoAnswer(answer["failure"])
        return answer

    def __call__(self, format):
        return self.answer(format)["text"].decode("utf-8")


def _run(command, operands, documents, words, progress=None, page=False):
    call = _Call(command, words, operands, documents)
    with _called_back(progress) as callback:
        return Result(call.answer("json", page, callback), call)


def _of_scenarios(command, scenarios, progress, page, flags):
    operands, documents = _operands(scenarios)
    return _run(command, operands, documents, _flag_words(command, flags), progress, page)


def plan(scenario, *, progress=None, page=False, **flags):
    """The best plans. Ctrl-C ends the search with the best so far."""
    flags.setdefault("reproducible", True)
    return _of_scenarios("plan", [scenario], progress, page, flags)


def evaluate(scenario, *, progress=None, page=False, **flags):
    """Time, memory and communication of the scenario's own plan."""
    return _of_scenarios("evaluate", [scenario], progress, page, flags)


def explain(scenario, *, progress=None, page=False, **flags):
    """The same prediction as worked formulas."""
    return _of_scenarios("explain", [scenario], progress, page, flags)


def sweep(scenario, over, *, progress=None, page=False, **flags):
    """Every combination of values, a row a point: over={"tp": [1, 2, 4]}."""
    return _of_scenarios("sweep", [scenario], progress, page, {"over": over, **flags})


def simulate(scenario, *, progress=None, page=False, **flags):
    """Event by event: a Chrome trace, or with compare=True all schedules."""
    return _of_scenarios("simulate", [scenario], progress, page, flags)


def compare(*scenarios, progress=None, page=False, **flags):
    """Scenarios next to one another: what differs, and why one is faster. with_=["plan.tp=4"]."""
    return _of_scenarios("compare", scenarios, progress, page, flags)


def export(scenario, to, **flags):
    """The plan in a framework's own words: files by name, and notes."""
    return _of_scenarios("export", [scenario], None, False, {"to": to, **flags})


def import_job(kind, source, **flags):
    """A foreign description (a file, or its text) as YAML of Shardplan's."""
    words = _flag_words("import", flags)
    name = os.fspath(source)
    if isinstance(name, str) and "\n" in name:
        with tempfile.TemporaryDirectory() as folder:
            file = os.path.join(folder, "job")
            with open(file, "w", encoding="utf-8") as out:
                out.write(name)
            return _run("import", [kind, file], {}, words)
    return _run("import", [kind, name], {}, words)


def validate(*evidence, progress=None, **flags):
    """Predicts measured runs: the error of each, and of all."""
    return _run("validate", [os.fspath(file) for file in evidence], {},
                _flag_words("validate", flags), progress)


def list_(kind, *words, **flags):
    """What the configurations offer: models, devices, clusters, stacks, engines, scenarios, keys."""
    return _run("list", [kind, *words], {}, _flag_words("list", flags))


def _whole_numbers(values):
    """The bytes of an array of numpy's or a column of pandas as 64-bit integers; None of others."""
    import numpy
    column = numpy.asarray(values)
    if column.ndim != 1 or column.dtype.kind not in "iufb":
        return None
    with numpy.errstate(invalid="ignore"):
        whole = column.astype("int64")
    return whole.tobytes() if (whole == column).all() else None


def _column(key, values, length):
    """64-bit integers as a buffer; one value stands for all plans."""
    if isinstance(values, (str, bytes)) or not hasattr(values, "__len__"):
        values = [values] * length
    whole = _whole_numbers(values) if hasattr(values, "astype") else None
    if whole is not None:
        return array.array("q", whole)
    try:
        if getattr(values, "ndim", 1) == 1 and not hasattr(values, "keys"):
            return array.array("q", map(operator.index, values))
    except (TypeError, OverflowError):
        pass
    raise TypeError(f"{key}: a column has whole numbers of 64 bits, of a switch 0 and 1; what is none "
                    "stands in the scenario, or set={'plan." + key + "': ...}")


def _cores():
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def evaluate_many(scenario, *, threads=None, set=(), config_path=(), progress=None, **columns):
    """Figures of many plans of one scenario: evaluate_many(s, tp=[1, 2], pp=[4, 2]).

    A column a key of the plan, all of one length, or one number for all; the other keys are the
    scenario's. `threads`: one a core where there are plans enough for it. Gives a dict of arrays
    (numpy's where it is there): iteration_s, tokens_per_s, mfu, hfu, bubble_fraction, peak_bytes,
    capacity_bytes, fits, dp, micro_batches, not a number where a plan breaks a rule, and `errors`,
    which says why.
    """
    operands, documents = _operands([scenario])
    if not columns:
        raise TypeError("evaluate_many() has no column; name a key of the plan: tp=[1, 2]")
    config_path = [config_path] if isinstance(config_path, (str, os.PathLike)) else config_path
    _checked([*operands, *documents.values()])
    length = max((len(values) for values in columns.values() if hasattr(values, "__len__")), default=1)
    if threads is None:
        threads = min(_cores(), 1 + length // 8192)  # each prices the layers for itself first
    columns = {key: _column(key, values, length) for key, values in columns.items()}
    with _called_back(progress) as callback:
        answer = _core.evaluate_many(
            operands[0], documents, [os.fspath(folder) for folder in config_path], _checked(_set_words(set)),
            columns, operator.index(threads), callback)
    try:
        import numpy
        read = numpy.frombuffer
    except ImportError:
        def read(data):
            return array.array("d", data)
    figures = {name: read(data) for name, data in answer["figures"].items()}
    figures["errors"] = answer["errors"]
    return figures


def _with_flags(function, command):
    """The function with its flags in its documentation, from the records of --help."""
    lines = [f"    {name.replace('-', '_')}: {flag['help']}"
             for name, flag in _FLAGS[command].items() if name not in _TAKEN]
    function.__doc__ += "\n\n    Keyword arguments, each a flag of the command:\n\n" + "\n".join(lines)


for _function, _command in (
        (plan, "plan"), (evaluate, "evaluate"), (explain, "explain"), (sweep, "sweep"),
        (simulate, "simulate"), (compare, "compare"), (export, "export"), (import_job, "import"),
        (validate, "validate"), (list_, "list")):
    _with_flags(_function, _command)
