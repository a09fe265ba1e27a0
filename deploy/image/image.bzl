# SPDX-License-Identifier: Apache-2.0
"""Container images as OCI layouts, made from what Bazel built and Debian's packages."""

def oci_image(name, image_name, title, programs, certificates = False, ports = [], static_packages = [], **kwargs):
    """An image as NAME.oci.tar and its bill of materials as NAME.spdx.json.

    Args:
      name: of the target.
      image_name: that loaders give it; the tag is the product's version.
      title: one line that says what it is.
      programs: label -> absolute path in the image. The first is what it runs.
      certificates: whether it holds certificate authorities.
      ports: that it listens on, for documentation.
      static_packages: Debian's packages with code that the programs have inside them.
      **kwargs: passed to genrule.
    """
    words = [
        "/usr/bin/python3 $(location //deploy/image:build_image.py)",
        "--name=" + image_name,
        "--title='%s'" % title,
        "--version_header=$(location //bridge/base:version.h)",
        "--out=$(location %s.oci.tar)" % name,
        "--sbom=$(location %s.spdx.json)" % name,
    ] + [
        "--program=$(location %s)=%s" % (label, path)
        for label, path in programs.items()
    ] + [
        "--static_package=" + each
        for each in static_packages
    ] + [
        "--port=%d" % each
        for each in ports
    ] + (["--certificates"] if certificates else [])
    native.genrule(
        name = name,
        srcs = programs.keys() + [
            "//bridge/base:version.h",
            # The libraries are the machine's: a changed package makes the image anew.
            "@dpkg//:status",
        ],
        outs = [name + ".oci.tar", name + ".spdx.json"],
        cmd = " ".join(words),
        tools = ["//deploy/image:build_image.py", "//deploy/image:modules"],
        **kwargs
    )
