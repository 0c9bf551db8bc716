import os
import subprocess

import pytest

from infra.package import ROOT, Package

CFN_LINT = ROOT / ".venv-lint" / "bin" / "cfn-lint"


def test_cloudformation_would_take_the_template(packaged: Package) -> None:
    if not CFN_LINT.exists() and not os.environ.get("CI"):
        pytest.skip("cfn-lint is not there: `make test` installs it into .venv-lint")
    linted = subprocess.run([CFN_LINT, packaged.template], capture_output=True, text=True, check=False)
    assert (linted.returncode, linted.stdout + linted.stderr) == (0, "")
