# SPDX-License-Identifier: Apache-2.0
"""Python tests inside Bazel: pytest files as one test target whose cases ./test counts."""

# Every test may start programs.
_LIBRARY = "//tests/runner:program.py"

def pytest_test(name, srcs, data = [], imports = [], env = {}, conftest = None, size = "small", tags = [], runner = "//tests/runner:pytest.sh", **kwargs):
    """A test target that runs pytest.

    Args:
      name: of the target.
      srcs: the files with tests; each is run.
      data: what they import or read: modules, built binaries, text. Reached at its runfiles path;
        the working directory is the runfiles root of this workspace.
      imports: directories (from the workspace's root) that go on PYTHONPATH, besides tests/runner.
      env: environment of the tests; $(location //x:y) and $(rootpath //x:y) are expanded.
      conftest: a conftest.py beside the srcs.
      size: as for every test.
      tags: as for every test.
      runner: a program that ends by running pytest.sh with its own arguments.
      **kwargs: passed to sh_test.
    """
    extra = [conftest] if conftest else []
    all_env = dict(env)
    all_env["SB_PYTHON_IMPORTS"] = ":".join(["tests/runner"] + imports)
    native.sh_test(
        name = name,
        size = size,
        srcs = [runner],
        args = ["$(rootpath %s)" % src for src in srcs],
        data = srcs + data + extra + [_LIBRARY, "@python//:venv"],
        env = all_env,
        tags = tags + ["python"],
        **kwargs
    )
