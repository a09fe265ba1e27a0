#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes from abx-provider.toml what the build needs: the manifest with its blanks filled in, and the
C++ header with the values that `initialize` must repeat exactly.

    make_manifest.py TEMPLATE VERSION PLATFORM OUT_TOML OUT_HEADER
"""

import json
import sys
import tomllib
from pathlib import Path


def cpp_string(text: str) -> str:
    return 'R"json(' + text + ')json"'


def header(manifest: dict) -> str:
    def text(value: object) -> str:
        return cpp_string(json.dumps(value, separators=(",", ":"), ensure_ascii=True))

    fields = manifest["config"]["fields"]
    lines = [
        "// Made by frontends/epp/make_manifest.py from abx-provider.toml.",
        "#pragma once",
        "",
        "#include <string_view>",
        "",
        "namespace bridge::epp::manifest {",
        "",
        f"inline constexpr std::string_view kProviderId = {json.dumps(manifest['provider']['id'])};",
        f"inline constexpr std::string_view kVersion = {json.dumps(manifest['provider']['version'])};",
        f"inline constexpr std::string_view kProtocol = {json.dumps(manifest['compat']['protocol'])};",
        f"inline constexpr int kOperationContractVersion = {manifest['operation_contract_version']};",
        f"inline constexpr int kCallTimeoutMs = {manifest['runtime']['call_timeout_ms']};",
        "// JSON text.",
        f"inline constexpr std::string_view kFeatures = {text(manifest['features']['supported'])};",
        f"inline constexpr std::string_view kOperations = {text(manifest['operations'])};",
        f"inline constexpr std::string_view kWorkflowInputs = {text(manifest['workflow']['inputs'])};",
        f"inline constexpr std::string_view kStartupModes = {text(manifest['workflow']['startups'])};",
        "// Keys of [config.fields].",
        "inline constexpr std::string_view kConfigFields[] = {",
        *[f"    {json.dumps(name)}," for name in fields],
        "};",
        "",
        "}  // namespace bridge::epp::manifest",
        "",
    ]
    return "\n".join(lines)


def main() -> None:
    template, version, platform, out_toml, out_header = sys.argv[1:]
    text = Path(template).read_text(encoding="utf-8")
    text = text.replace("@VERSION@", version).replace("@PLATFORM@", platform)
    manifest = tomllib.loads(text)
    Path(out_toml).write_text(text, encoding="utf-8")
    Path(out_header).write_text(header(manifest), encoding="utf-8")


if __name__ == "__main__":
    main()
