# SPDX-License-Identifier: Apache-2.0
"""Programs that have libraries of Debian inside. The loader looks up some 20,000 names of gRPC, protobuf and
Abseil at every start: half of what a start costs."""

_ABSL = ["absl_" + each for each in [
    "bad_optional_access",
    "bad_variant_access",
    "base",
    "city",
    "civil_time",
    "cord",
    "cord_internal",
    "cordz_functions",
    "cordz_handle",
    "cordz_info",
    "debugging_internal",
    "demangle_internal",
    "exponential_biased",
    "graphcycles_internal",
    "hash",
    "int128",
    "log_severity",
    "low_level_hash",
    "malloc_internal",
    "random_distributions",
    "random_internal_platform",
    "random_internal_pool_urbg",
    "random_internal_randen",
    "random_internal_randen_hwaes",
    "random_internal_randen_hwaes_impl",
    "random_internal_randen_slow",
    "random_internal_seed_material",
    "random_seed_gen_exception",
    "random_seed_sequences",
    "raw_hash_set",
    "raw_logging_internal",
    "spinlock_wait",
    "stacktrace",
    "status",
    "statusor",
    "str_format_internal",
    "strerror",
    "strings",
    "strings_internal",
    "symbolize",
    "synchronization",
    "throw_delegate",
    "time",
    "time_zone",
]]

ABSL_FLAGS = ["absl_flags_" + each for each in [
    "commandlineflag",
    "commandlineflag_internal",
    "config",
    "internal",
    "marshalling",
    "parse",
    "private_handle_accessor",
    "program_name",
    "reflection",
    "usage",
    "usage_internal",
]]

GRPC = [
    "grpc++",
    "grpc",
    "gpr",
    "upb",
    "address_sorting",
    "cares",
] + _ABSL

def cc_binary_with_archives(name, archives, additional_linker_inputs = [], linkopts = [], shared_in = None, **kwargs):
    """A program that has `archives` inside, also where its dependencies name the shared libraries.

    Args:
      name: of the program.
      archives: names of libraries as in -lNAME. Those that they need have to be among them.
      additional_linker_inputs: as of cc_binary.
      linkopts: as of cc_binary.
      shared_in: a config_setting in which the shared libraries are taken after all.
      **kwargs: as of cc_binary.
    """

    # A folder that the linker looks into first, so that `-lgrpc` is the archive. The shared library would not
    # only be named by the program; it would also make the linker export what it refers to.
    folder = name + ".archives"
    files = ["%s/lib%s.a" % (folder, each) for each in archives]
    native.genrule(
        name = name + "_archives",
        srcs = ["@system//:archives"],
        outs = files,
        cmd = "set -- $(SRCS); dir=$$(dirname $$(readlink -f $$1)); " +
              "for out in $(OUTS); do ln -sf $$dir/$$(basename $$out) $$out; done",
    )
    inside = ["-L$(GENDIR)/%s/%s" % (native.package_name(), folder), "-Wl,--start-group"] + [
        "-l" + each
        for each in archives
    ] + ["-Wl,--end-group", "-lz"]
    if shared_in:
        inside = select({
            shared_in: [],
            "//conditions:default": inside,
        })
    native.cc_binary(
        name = name,
        additional_linker_inputs = additional_linker_inputs + files,
        linkopts = linkopts + inside,
        **kwargs
    )
