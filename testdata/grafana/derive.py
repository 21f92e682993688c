#!/usr/bin/env python3
"""Writes dashboard.schema.json from the types of the npm package @grafana/schema: derive.py VERSION

Needs npm and the network; the tests need neither. board.ts says which types a board of ours is made of.
"""

import collections
import json
import subprocess
import sys
import tempfile
from pathlib import Path

here = Path(__file__).resolve().parent
version = sys.argv[1]
tools = [f"@grafana/schema@{version}", "ts-json-schema-generator@2", "typescript@5.6"]
with tempfile.TemporaryDirectory() as work:
    def run(*args):
        return subprocess.run(args, cwd=work, check=True, capture_output=True, text=True).stdout

    Path(work, "package.json").write_text("{}")
    Path(work, "board.ts").write_text((here / "board.ts").read_text())
    run("npm", "install", "--no-audit", "--no-fund", *tools)
    flags = ["--no-type-check", "--jsDoc", "none", "--expose", "none", "--no-top-ref"]
    schema = json.loads(run("npx", "ts-json-schema-generator", "--path", "board.ts", "--type", "Board", *flags))

for gone in ("$schema", "definitions"):
    schema.pop(gone, None)
schema["properties"].pop("snapshot", None)
for panel in schema["properties"]["panels"]["items"]["anyOf"]:
    if panel["properties"]["type"].get("const") == "row":
        # Rows are never collapsed here: their panels stand below them.
        panel["properties"]["panels"] = {"type": "array", "maxItems": 0}


def each(schema, f):
    """The schema with f on each schema in it. Names of properties are no schemas."""
    out = {}
    for key, value in schema.items():
        if key == "properties":
            out[key] = {name: f(v) for name, v in value.items()}
        elif key in ("items", "additionalProperties") and isinstance(value, dict):
            out[key] = f(value)
        elif key in ("anyOf", "allOf"):
            out[key] = [f(v) for v in value]
        else:
            out[key] = value
    return out


def text(schema):
    return json.dumps(schema, sort_keys=True)


def count(schema, seen):
    if len(text(schema)) > 70:
        seen[text(schema)] += 1
    each(schema, lambda s: count(s, seen))
    return schema


seen, names = collections.Counter(), {}
count(schema, seen)


def folded(schema):
    """What stands twice stands once, among the definitions."""
    key = text(schema)
    if seen[key] < 2:
        return each(schema, folded)
    if key not in names:
        body = each(schema, folded)
        names[key] = (f"t{len(names)}", body)
    return {"$ref": "#/definitions/" + names[key][0]}


comment = (
    f"Which fields a dashboard may have: facts of the types of the npm package @grafana/schema {version} (raw/dashboard, and "
    "panelcfg of each kind of panel that we use), written by derive.py. What the package leaves open, Prometheus' queries and "
    "annotations and links of fields, is closed in board.ts by what its data source reads."
)
top = {"$schema": "http://json-schema.org/draft-07/schema#", "$comment": comment, **each(schema, folded)}
top["definitions"] = {name: body for name, body in names.values()}


def lines(value, depth=0):
    short = json.dumps(value, ensure_ascii=False)
    if len(short) + depth <= 150 or not isinstance(value, (dict, list)):
        return short
    pad = " " * (depth + 1)
    if isinstance(value, dict):
        inner = [f"{pad}{json.dumps(k)}: {lines(v, depth + 1)}" for k, v in value.items()]
        return "{\n" + ",\n".join(inner) + "\n" + " " * depth + "}"
    return "[\n" + ",\n".join(pad + lines(v, depth + 1) for v in value) + "\n" + " " * depth + "]"


(here / "dashboard.schema.json").write_text(lines(top) + "\n")
