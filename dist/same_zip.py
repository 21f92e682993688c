"""A zip of a folder with the same bytes every time: same_zip.py FILE FOLDER."""

import os
import sys
import time
import zipfile
from pathlib import Path

out, folder = Path(sys.argv[1]), Path(sys.argv[2])
# Zip knows no time before 1980.
when = time.gmtime(max(int(os.environ.get("SOURCE_DATE_EPOCH", "0")), 315532800))[:6]
with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as z:
    for path in sorted(p for p in folder.rglob("*") if p.is_file()):
        info = zipfile.ZipInfo(path.relative_to(folder).as_posix(), when)
        info.compress_type = zipfile.ZIP_DEFLATED
        info.external_attr = (0o755 if path.suffix == ".exe" else 0o644) << 16
        z.writestr(info, path.read_bytes())
