"""The domain needs nothing but Python itself."""

import ast
import sys
from pathlib import Path

import pytest

DOMAIN = Path(__file__).parents[2] / "chalicelib" / "domain"


def _imported(module: Path) -> set[str]:
    nodes = tuple(ast.walk(ast.parse(module.read_text(encoding="utf-8"))))
    names = [alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names]
    names += [node.module for node in nodes if isinstance(node, ast.ImportFrom) and node.module]
    return {
        name for name in names if not name.startswith("chalicelib.domain.") and name != "chalicelib.domain"
    }


@pytest.mark.parametrize(
    "module", [pytest.param(file, id=str(file.relative_to(DOMAIN))) for file in sorted(DOMAIN.rglob("*.py"))]
)
def test_the_domain_imports_only_the_standard_library(module: Path) -> None:
    outside = {name for name in _imported(module) if name.partition(".")[0] not in sys.stdlib_module_names}
    assert not outside
