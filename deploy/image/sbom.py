# SPDX-License-Identifier: Apache-2.0
"""The bill of materials of an image: SPDX 2.3 in JSON, the same bytes for the same image."""

from __future__ import annotations

import hashlib
import json
import re
from typing import Any

from files import File
from oci import EPOCH
from packages import Package

_OURS = "SPDXRef-Package-image"


def _id(kind: str, name: str) -> str:
    return f"SPDXRef-{kind}-" + re.sub(r"[^A-Za-z0-9.-]", "-", name)


def _debian(package: Package) -> dict[str, Any]:
    version = package.version.replace("+", "%2B").replace(":", "%3A").replace("~", "~")
    return {
        "SPDXID": _id("Package", package.name),
        "name": package.name,
        "versionInfo": package.version,
        "supplier": "Organization: Debian",
        "downloadLocation": "NOASSERTION",
        "filesAnalyzed": False,
        "licenseConcluded": "NOASSERTION",
        "licenseDeclared": "NOASSERTION",
        "copyrightText": "NOASSERTION",
        "sourceInfo": f"built from {package.source} {package.source_version}",
        "externalRefs": [{
            "referenceCategory": "PACKAGE-MANAGER",
            "referenceType": "purl",
            "referenceLocator": f"pkg:deb/debian/{package.name}@{version}"
                                f"?arch={package.architecture}&distro=debian-12",
        }],
    }


def _file(each: File) -> dict[str, Any]:
    return {
        "SPDXID": _id("File", each.path),
        "fileName": "./" + each.path,
        "checksums": [
            {"algorithm": "SHA1", "checksumValue": hashlib.sha1(each.data).hexdigest()},
            {"algorithm": "SHA256", "checksumValue": hashlib.sha256(each.data).hexdigest()},
        ],
        "licenseConcluded": "NOASSERTION",
        "licenseInfoInFiles": ["NOASSERTION"],
        "copyrightText": "NOASSERTION",
    }


def _relation(one: str, how: str, other: str) -> dict[str, str]:
    return {"spdxElementId": one, "relationshipType": how, "relatedSpdxElement": other}


def document(name: str, version: str, image_digest: str, files: dict[File, Package | None],
             static: list[Package]) -> bytes:
    """`files` with their packages (None: ours), `static` what the programs have inside them."""
    packages = sorted({p for p in files.values() if p is not None} | set(static))
    ours = {
        "SPDXID": _OURS,
        "name": name,
        "versionInfo": version,
        "supplier": "NOASSERTION",
        "downloadLocation": "NOASSERTION",
        "filesAnalyzed": False,
        "licenseConcluded": "Apache-2.0",
        "licenseDeclared": "Apache-2.0",
        "copyrightText": "NOASSERTION",
        "primaryPackagePurpose": "CONTAINER",
        "checksums": [{"algorithm": "SHA256", "checksumValue": image_digest.split(":")[1]}],
    }
    relations = [_relation("SPDXRef-DOCUMENT", "DESCRIBES", _OURS)]
    relations += [_relation(_OURS, "CONTAINS", _id("Package", p.name)) for p in packages
                  if p not in static]
    relations += [_relation(_OURS, "STATIC_LINK", _id("Package", p.name)) for p in static]
    relations += [_relation(_OURS if p is None else _id("Package", p.name), "CONTAINS",
                            _id("File", f.path))
                  for f, p in sorted(files.items(), key=lambda item: item[0].path)]
    out = {
        "spdxVersion": "SPDX-2.3",
        "dataLicense": "CC0-1.0",
        "SPDXID": "SPDXRef-DOCUMENT",
        "name": f"{name}-{version}",
        "documentNamespace": f"https://spdx.org/spdxdocs/{name}-{image_digest.split(':')[1]}",
        "creationInfo": {"created": EPOCH, "creators": ["Tool: //deploy/image"]},
        "packages": [ours, *(_debian(p) for p in packages)],
        "files": [_file(f) for f in sorted(files, key=lambda f: f.path)],
        "relationships": relations,
    }
    return (json.dumps(out, indent=1, sort_keys=True) + "\n").encode()
