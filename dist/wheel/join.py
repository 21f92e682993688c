"""`join.py WHEEL PROGRAM LICENCE FOLDER`: the wheel of the Python module with the program beside it, as pip installs it into `bin/`."""

import base64
import hashlib
import os
import sys
import time
import zipfile
from pathlib import Path


def main() -> None:
    wheel, program, licence, folder = map(Path, sys.argv[1:])
    # The oldest time that a zip can hold, where no commit says another.
    stamp = time.gmtime(max(int(os.environ.get("SOURCE_DATE_EPOCH") or 0), 315532800))[:6]
    name = "-".join(wheel.name.split("-")[:2])
    added = {
        f"{name}.data/scripts/{program.name}": (program.read_bytes(), 0o755),
        f"{name}.dist-info/licenses/LICENSE": (licence.read_bytes(), 0o644),
    }
    with zipfile.ZipFile(wheel) as old, zipfile.ZipFile(folder / wheel.name, "w", zipfile.ZIP_DEFLATED) as new:
        lines = []

        def put(path: str, data: bytes, mode: int) -> None:
            entry = zipfile.ZipInfo(path, stamp)
            entry.external_attr = (0o100000 | mode) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            new.writestr(entry, data)
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            lines.append(f"{path},sha256={digest},{len(data)}\n")

        for path, (data, mode) in added.items():
            put(path, data, mode)
        # maturin's list of parts names folders of this machine; `dist/run listings` writes one without.
        for path in sorted(p for p in set(old.namelist()) - set(added) if "/sboms/" not in p):
            data = old.read(path)
            if path.endswith(".dist-info/METADATA") and b"\nLicense-File:" not in data:
                data = data.replace(b"\nLicense-Expression:", b"\nLicense-File: LICENSE\nLicense-Expression:", 1)
            # The list of files is written anew, and ends with its own line, which has no sum.
            if not path.endswith("/RECORD"):
                put(path, data, 0o755 if path.endswith(".so") else 0o644)
        record = f"{name}.dist-info/RECORD"
        put(record, ("".join(lines) + f"{record},,\n").encode(), 0o644)


main()
