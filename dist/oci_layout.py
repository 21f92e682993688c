"""An OCI image layout of one layer for each architecture: oci_layout.py FOLDER NAME VERSION ARCH=LAYER.tar...

https://github.com/opencontainers/image-spec: image-layout.md, image-index.md, manifest.md, config.md
"""

import gzip
import hashlib
import json
import os
import sys
import time
from pathlib import Path

folder, name, version = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
blobs = folder / "blobs" / "sha256"
blobs.mkdir(parents=True)
created = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(int(os.environ.get("SOURCE_DATE_EPOCH", "0"))))
MANIFEST = "application/vnd.oci.image.manifest.v1+json"
INDEX = "application/vnd.oci.image.index.v1+json"
LABELS = {
    "org.opencontainers.image.title": "dualplane",
    "org.opencontainers.image.version": version,
    "org.opencontainers.image.licenses": "Apache-2.0",
    "org.opencontainers.image.source": "https://github.com/dualplane/dualplane",
}


def blob(data: bytes, media: str) -> dict:
    digest = hashlib.sha256(data).hexdigest()
    (blobs / digest).write_bytes(data)
    return {"mediaType": media, "digest": f"sha256:{digest}", "size": len(data)}


def document(value: dict, media: str) -> dict:
    return blob(json.dumps(value, sort_keys=True).encode(), media)


manifests = []
for each in sys.argv[4:]:
    arch, _, path = each.partition("=")
    layer = Path(path).read_bytes()
    config = {
        "created": created,
        "architecture": arch,
        "os": "linux",
        "config": {
            "User": "65532:65532",
            "Entrypoint": ["/usr/bin/dualplane"],
            "Env": ["PATH=/usr/bin"],
            "WorkingDir": "/",
            "Labels": LABELS,
        },
        "rootfs": {"type": "layers", "diff_ids": ["sha256:" + hashlib.sha256(layer).hexdigest()]},
    }
    manifest = {
        "schemaVersion": 2,
        "mediaType": MANIFEST,
        "config": document(config, "application/vnd.oci.image.config.v1+json"),
        "layers": [blob(gzip.compress(layer, 9, mtime=0), "application/vnd.oci.image.layer.v1.tar+gzip")],
        "annotations": LABELS,
    }
    manifests.append(document(manifest, MANIFEST) | {"platform": {"architecture": arch, "os": "linux"}})

index = document({"schemaVersion": 2, "mediaType": INDEX, "manifests": manifests}, INDEX)
# `ctr images import` and `skopeo` read the reference from different annotations.
index["annotations"] = {"org.opencontainers.image.ref.name": version, "io.containerd.image.name": name}
(folder / "index.json").write_text(json.dumps({"schemaVersion": 2, "mediaType": INDEX, "manifests": [index]}, sort_keys=True))
(folder / "oci-layout").write_text(json.dumps({"imageLayoutVersion": "1.0.0"}))
