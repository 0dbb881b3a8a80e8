"""Print how large each room is, in nodes of the syntax tree and in lines: for information."""

import ast
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[1]


def main() -> None:
    library = ROOT / "capcal_lib"
    nodes: Counter[str] = Counter()
    lines: Counter[str] = Counter()
    for path in [*library.rglob("*.py"), *(ROOT / "notebooks").glob("*.py")]:
        text = path.read_text(encoding="utf-8")
        room = "notebooks"
        if path.is_relative_to(library):
            room = path.relative_to(library).parts[0]
        nodes[room] += sum(1 for _ in ast.walk(ast.parse(text)))
        lines[room] += len(text.splitlines())
    print(f"{'nodes':>9} {'lines':>7}")
    for room in sorted(nodes):
        print(f"{nodes[room]:9,} {lines[room]:7,}  {room}")
    print(
        f"{nodes.total() - nodes['notebooks']:9,} {lines.total() - lines['notebooks']:7,}  library"
    )


if __name__ == "__main__":
    main()
