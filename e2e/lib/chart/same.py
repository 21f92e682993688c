"""Holds the chart against deploy/, which is documented and tested: same.py FOLDER, with the JSON of what is compared.

    default.json, unprivileged.json, everything.json   what the chart renders
    agent.json, overlay.json, rbac.json                deploy/agent.yaml, deploy/ as Kustomize makes it, deploy/rbac.yaml
    values.json, schema.json                           the chart's own
"""

import json
import sys
from pathlib import Path

DIR = Path(sys.argv[1])
failed = 0


def load(name):
    return json.loads((DIR / f"{name}.json").read_text())


def one(objects, kind, name=None):
    found = [o for o in objects if o["kind"] == kind and name in (None, o["metadata"]["name"])]
    if len(found) != 1:
        sys.exit(f"same.py: {len(found)} of {kind} {name or ''}")
    return found[0]


def differences(ours, theirs, at):
    if isinstance(ours, dict) and isinstance(theirs, dict):
        for key in sorted({*ours, *theirs}):
            if key not in ours or key not in theirs:
                yield f"{at}.{key}: only in {'the chart' if key in ours else 'deploy/'}"
            else:
                yield from differences(ours[key], theirs[key], f"{at}.{key}")
    elif isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
        for i, (a, b) in enumerate(zip(ours, theirs)):
            yield from differences(a, b, f"{at}[{i}]")
    elif ours != theirs:
        yield f"{at}: the chart has {json.dumps(ours)}, deploy/ {json.dumps(theirs)}"


def check(what, complaints):
    global failed
    complaints = list(complaints)
    failed += len(complaints)
    for line in complaints:
        print(f"FAILED {what}: {line}", file=sys.stderr)
    if not complaints:
        print(f"       {what}")


def daemonset(objects):
    """Its spec without labels, which Helm's conventions choose, and with names as keys: their order means nothing."""
    spec = one(objects, "DaemonSet")["spec"]
    labels = spec["selector"].pop("matchLabels")
    if not labels.items() <= spec["template"]["metadata"].pop("labels").items():
        sys.exit("same.py: the DaemonSet does not select its own pods")
    pod = spec["template"]["spec"]
    pod["volumes"] = {v["name"]: v for v in pod["volumes"]}
    for container in pod["containers"]:
        container["volumeMounts"] = {m["mountPath"]: m for m in container["volumeMounts"]}
    return spec


check("the DaemonSet is that of deploy/agent.yaml",
      differences(daemonset(load("default")), daemonset(load("agent")), "spec"))
check("without privileges it is that of `kubectl apply -k deploy`",
      differences(daemonset(load("unprivileged")), daemonset(load("overlay")), "spec"))
for kind, parts in (("ClusterRole", ["rules"]), ("ClusterRoleBinding", ["roleRef", "subjects"]), ("ServiceAccount", [])):
    ours, theirs = one(load("default"), kind), one(load("agent"), kind)
    check(f"the agent's {kind} is the same", differences(
        {p: ours[p] for p in parts} | {"name": ours["metadata"]["name"]},
        {p: theirs[p] for p in parts} | {"name": theirs["metadata"]["name"]}, kind))

for role, kind in (("reader", "ClusterRole"), ("kubelet", "ClusterRole"), ("apply", "ClusterRole"), ("minimal", "Role")):
    ours = next(o for o in load("everything") if o["kind"] == kind and o["metadata"]["name"].endswith(f"-{role}"))
    check(f"the role {role} is that of deploy/rbac.yaml",
          differences(ours["rules"], one(load("rbac"), kind, f"dualplane-{role}")["rules"], role))

# What changes something is bound by hand, and never everywhere.
bound = [o["metadata"]["name"] for o in load("default") if o["kind"].endswith("Binding")]
check("only the agent is bound by default", [] if bound == ["dualplane-agent"] else [str(bound)])
writing = {o["metadata"]["name"] for o in load("everything")
           if o["kind"] == "ClusterRole" and any({*r["verbs"]} - {"get", "list"} for r in o["rules"])}
wide = {o["roleRef"]["name"] for o in load("everything") if o["kind"] == "ClusterRoleBinding"} & writing
check("nothing but the agent's Event is written everywhere",
      [f"{n} is bound in every namespace" for n in wide if not n.endswith("-agent")])


def undescribed(values, schema, at="values"):
    """Every value has its type, each type its value and a sentence. What a user fills freely ends the walk."""
    if "description" not in schema and at != "values":
        yield f"{at} has no description"
    properties = schema.get("properties")
    if properties is None:
        return
    for key in sorted({*values, *properties} - {"global", "claims"}):
        if key not in properties:
            yield f"{at}.{key} is not in the schema"
        elif key not in values:
            yield f"{at}.{key} is not in values.yaml"
        else:
            inner = values[key] if isinstance(values[key], dict) else {}
            yield from undescribed(inner, properties[key], f"{at}.{key}")


check("values.yaml and values.schema.json name the same", undescribed(load("values")[0], load("schema")[0]))

# 63 bytes is the bound of a label's value; pods are found by labels of their owner's name.
check("no name is too long", [f"{o['kind']} {o['metadata']['name']}" for o in load("long") if len(o["metadata"]["name"]) > 57])
sys.exit(failed > 0)
