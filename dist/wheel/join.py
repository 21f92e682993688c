"""`join.py WHEEL PROGRAM FOLDER`: the wheel of the Python module with the program beside it, as pip installs it into `bin/`."""

import base64
import hashlib
import os
import sys
import time
import zipfile
from pathlib import Path


def main() -> None:
    wheel, program, folder = map(Path, sys.argv[1:])
    # The oldest time that a zip can hold, where no commit says another.
    stamp = time.gmtime(max(int(os.environ.get("SOURCE_DATE_EPOCH") or 0), 315532800))[:6]
    script = f"{'-'.join(wheel.name.split('-')[:2])}.data/scripts/{program.name}"
    body = program.read_bytes()
    digest = base64.urlsafe_b64encode(hashlib.sha256(body).digest()).rstrip(b"=").decode()
    with zipfile.ZipFile(wheel) as old, zipfile.ZipFile(folder / wheel.name, "w", zipfile.ZIP_DEFLATED) as new:

        def put(name: str, data: bytes, mode: int) -> None:
            entry = zipfile.ZipInfo(name, stamp)
            entry.external_attr = (0o100000 | mode) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            new.writestr(entry, data)

        put(script, body, 0o755)
        # The list of files comes last, and ends with its own line, which has no sum.
        for entry in sorted(old.infolist(), key=lambda e: (e.filename.endswith("/RECORD"), e.filename)):
            data = old.read(entry)
            if entry.filename.endswith("/RECORD"):
                data = f"{script},sha256={digest},{len(body)}\n".encode() + data
            put(entry.filename, data, 0o755 if entry.filename.endswith(".so") else 0o644)


main()
