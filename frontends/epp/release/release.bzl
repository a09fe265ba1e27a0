# SPDX-License-Identifier: Apache-2.0
"""The directory and the archive that hosts of EPP/1 install."""

# What ships is built in one way, whatever the rest of the build is: small, since a host refuses files of
# 10 MiB, and never with a sanitizer.
def _as_shipped_impl(_settings, _attr):
    return {
        "//command_line_option:compilation_mode": "opt",
        "//command_line_option:copt": ["-Os", "-g0"],
        "//command_line_option:linkopt": [],
    }

_as_shipped = transition(
    implementation = _as_shipped_impl,
    inputs = [],
    outputs = [
        "//command_line_option:compilation_mode",
        "//command_line_option:copt",
        "//command_line_option:linkopt",
    ],
)

def _plugin_impl(ctx):
    directory = ctx.actions.declare_directory(ctx.label.name)
    archive = ctx.actions.declare_file(ctx.attr.archive + ".tar.gz")
    args = ctx.actions.args()
    args.add("--directory", directory.path)
    args.add("--archive", archive)
    args.add("--top", ctx.attr.top)

    inputs = []
    for target, place in ctx.attr.files.items():
        for file in target[DefaultInfo].files.to_list():
            args.add(file.path + "=" + place)
            inputs.append(file)
    for target in ctx.attr.executables:
        file = target[DefaultInfo].files_to_run.executable
        args.add(file.path + "=bin/")
        inputs.append(file)
    ctx.actions.run_shell(
        outputs = [directory, archive],
        inputs = inputs + [ctx.file._make_plugin],
        arguments = [ctx.file._make_plugin.path, args],
        command = 'exec /usr/bin/python3 "$@"',
        mnemonic = "EppPlugin",
    )
    return [
        DefaultInfo(files = depset([directory]), runfiles = ctx.runfiles([directory])),
        OutputGroupInfo(archive = depset([archive])),
    ]

epp_plugin = rule(
    implementation = _plugin_impl,
    doc = "A directory named like the target; the output group `archive` is the same as a .tar.gz.",
    attrs = {
        "archive": attr.string(doc = "Name of the archive, without .tar.gz.", mandatory = True),
        "executables": attr.label_list(doc = "Go into bin/, built as shipped.", cfg = _as_shipped),
        "files": attr.label_keyed_string_dict(
            doc = "Other files and where they go: a name, or a folder with / at its end; " +
                  "`*` in it is the name of the file's own folder.",
            allow_files = True,
        ),
        "top": attr.string(doc = "The archive's only folder.", mandatory = True),
        "_allowlist_function_transition": attr.label(
            default = "@bazel_tools//tools/allowlists/function_transition_allowlist",
        ),
        "_make_plugin": attr.label(default = "make_plugin.py", allow_single_file = True),
    },
)
