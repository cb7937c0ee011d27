"""What commands answer: JSON with attributes, tables, and the report as a page."""

import html
import json
import os


class Record(dict):
    """An object of the JSON: its keys are attributes too."""

    def __getattr__(self, name):
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f"{name}; there are {', '.join(map(str, self))}") from None

    def __dir__(self):
        return [*super().__dir__(), *self]


# With what every answer, and every row of one that is a list, begins.
_OF_ALL = ("format_version", "program")


def _plain(value):
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list) else value


def _flat(value, prefix=""):
    """A row: maps in maps by keys with dots, lists as they are."""
    row = {}
    for key, item in value.items():
        if isinstance(item, dict):
            row.update(_flat(item, f"{prefix}{key}."))
        else:
            row[prefix + key] = item
    return row


class Result:
    """The answer of a command. Keys of its JSON are attributes: `found.plans[0].time.iteration_s`.

    status: the command's exit status; 3: nothing fits, and the report says what would.
    warnings: what the command prints to standard error. json: the bytes that it prints.
    """

    def __init__(self, answer, again):
        self.status = answer["status"]
        self.warnings = answer["warnings"]
        self.json = answer["text"]
        self._page = answer["page"]
        self._again = again
        self._data = json.loads(self.json, object_pairs_hook=Record) if self.json else Record()

    def __bool__(self):
        return self.status == 0

    def __getattr__(self, name):
        if name.startswith("__") or name == "_data":
            raise AttributeError(name)
        if isinstance(self._data, dict):
            return self._data.__getattr__(name)
        raise AttributeError(f"{name}; the answer is a list of rows: .rows(), [0]")

    def __getitem__(self, key):
        return self._data[key]

    def __len__(self):
        return len(self._data)

    def __iter__(self):
        return iter(self._data)

    def __dir__(self):
        return [*super().__dir__(), *(self._data if isinstance(self._data, dict) else ())]

    @property
    def interrupted(self):
        """Whether a signal ended the search: the answer is then the best so far."""
        return self.status > 128

    @property
    def best(self):
        """The best plan, or None."""
        plans = self._data.get("plans") if isinstance(self._data, dict) else None
        return plans[self._data.get("best") or 0] if plans else None

    def to_dict(self):
        """The JSON as plain dicts and lists."""
        return _plain(self._data)

    def rows(self):
        """The rows of the answer: its plans, points, scenarios, or itself; not what it is of."""
        data = self._data
        if isinstance(data, list):
            rows = data
        else:
            rows = next((data[key] for key in ("plans", "rows", "scenarios", "points")
                         if isinstance(data.get(key), list)), [data])
        return [_flat({key: item for key, item in row.items() if key not in _OF_ALL}) for row in rows]

    def to_pandas(self):
        """The rows as a pandas.DataFrame; maps in them by keys with dots."""
        import pandas
        return pandas.DataFrame(self.rows())

    def report(self, format="text"):
        """The same report in another format of the command: text, md, html, csv, yaml."""
        if format == "json":
            return self.json.decode()
        if format == "html" and self._page:
            return self._page
        return self._again(format)

    def save(self, file):
        """Writes the report; the ending says how: .html, .json, .yaml, .csv, .md, .svg, .txt."""
        name = os.fspath(file)
        ending = os.path.splitext(name)[1].lstrip(".").lower()
        text = self.report({"txt": "text", "yml": "yaml", "htm": "html"}.get(ending, ending or "text"))
        with open(name, "w", encoding="utf-8", newline="") as out:
            out.write(text)

    def _repr_html_(self):
        from . import InputError
        try:
            page = html.escape(self.report("html"), quote=True)
        except InputError:  # the command has no page
            return f"<pre>{html.escape(self.report())}</pre>"
        return ('<iframe style="width:100%;height:640px;border:0" sandbox="allow-scripts" '
                f'srcdoc="{page}"></iframe>')

    def __str__(self):
        return self.report("text")

    def __repr__(self):
        keys = ", ".join(self._data) if isinstance(self._data, dict) else f"{len(self._data)} rows"
        return f"<shardplan.Result status {self.status}: {keys}>"
