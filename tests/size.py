"""Count the nodes of the syntax tree by room and of the notebooks, and fail above the limits."""

import ast
import sys
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[1]
LIBRARY, TOGETHER = 100_000, 140_000  # see CONTRIBUTING, "Size"


def main() -> int:
    library = ROOT / "capcal_lib"
    rooms: Counter[str] = Counter()
    for path in [*library.rglob("*.py"), *(ROOT / "notebooks").glob("*.py")]:
        inside = path.is_relative_to(library)
        room = path.relative_to(library).parts[0] if inside else "notebooks"
        rooms[room] += sum(1 for _ in ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
    for room, nodes in sorted(rooms.items()):
        print(f"{nodes:9,}  {room}")
    together = rooms.total()
    print(f"{together - rooms['notebooks']:9,}  library, of {LIBRARY:,}")
    print(f"{together:9,}  with the notebooks, of {TOGETHER:,}")
    return together - rooms["notebooks"] > LIBRARY or together > TOGETHER


if __name__ == "__main__":
    sys.exit(main())
