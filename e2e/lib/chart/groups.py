"""Prints the groups of the one PrometheusRule among objects, as a rule file: groups.py FILE. JSON is YAML."""

import json
import sys
from pathlib import Path

objects = json.loads(Path(sys.argv[1]).read_text())
(rule,) = [o for o in objects if o["kind"] == "PrometheusRule"]
print(json.dumps({"groups": rule["spec"]["groups"]}, indent=1, sort_keys=True))
