"""Writes a JSON schema for each kind of an API, for kubeconform: KIND-GROUP-VERSION.json.

    schemas.py FOLDER SWAGGER CRD...

SWAGGER is Kubernetes' own description (api/openapi-spec/swagger.json). A field that it does not name is an error, which the
description itself leaves open; so is null, which the API server drops silently.
"""

import json
import sys
from pathlib import Path

OUT = Path(sys.argv[1])
PREFIX = "#/definitions/"


def strict(schema):
    """The schema with every object closed that names its fields and says nothing else."""
    if schema.get("format") == "int-or-string" or schema.get("x-kubernetes-int-or-string"):
        return {"anyOf": [{"type": "integer"}, {"type": "string"}]}
    closed = {k: v for k, v in schema.items() if not k.startswith("x-")}
    for word in ("items", "additionalProperties"):
        if isinstance(schema.get(word), dict):
            closed[word] = strict(schema[word])
    for word in ("allOf", "anyOf", "oneOf"):
        if word in schema:
            closed[word] = [strict(s) if "properties" in s else s for s in schema[word]]
    if "properties" in schema:
        closed["properties"] = {name: strict(s) for name, s in schema["properties"].items()}
        if not schema.get("x-kubernetes-preserve-unknown-fields"):
            closed.setdefault("additionalProperties", False)
    return closed


def write(group, version, kind, schema):
    # As kubeconform asks: the first word of the group.
    parts = [kind, group.split(".")[0], version] if group else [kind, version]
    schema["properties"]["apiVersion"] = {"const": f"{group}/{version}" if group else version}
    schema["properties"]["kind"] = {"const": kind}
    schema["required"] = sorted({*schema.get("required", []), "apiVersion", "kind", "metadata"})
    (OUT / ("-".join(parts).lower() + ".json")).write_text(json.dumps(schema))


def reached(name, definitions, found):
    """Adds the definitions that one refers to, and those that they refer to."""
    for ref in set(json.dumps(definitions[name]).split(f'"$ref": "{PREFIX}')[1:]):
        ref = ref.split('"')[0]
        if ref not in found:
            found.add(ref)
            reached(ref, definitions, found)
    return found


def kubernetes(path):
    raw = json.loads(path.read_text())["definitions"]
    definitions = {name: strict(d) for name, d in raw.items()}
    for name, d in raw.items():
        kinds = d.get("x-kubernetes-group-version-kind", [])
        # What is no object: options of requests.
        if len(kinds) != 1 or "metadata" not in d.get("properties", {}):
            continue
        gvk = kinds[0]
        schema = json.loads(json.dumps(definitions[name]))
        schema["definitions"] = {ref: definitions[ref] for ref in sorted(reached(name, definitions, set()))}
        write(gvk["group"], gvk["version"], gvk["kind"], schema)


def custom(path):
    spec = json.loads(path.read_text())["spec"]
    for version in spec["versions"]:
        schema = strict(version["schema"]["openAPIV3Schema"])
        schema["properties"]["metadata"] = {"type": "object"}
        write(spec["group"], version["name"], spec["names"]["kind"], schema)


kubernetes(Path(sys.argv[2]))
for crd in sys.argv[3:]:
    custom(Path(crd))
