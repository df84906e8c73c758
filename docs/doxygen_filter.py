"""Doxygen's input filter: a header of include/ample, with its comments as Doxygen expects them.

The comment at the top becomes the description of the file, its indented lines (equations, examples)
verbatim; a comment behind a member belongs to that member. Private parts are left out, and so are
designated initialisers, which Sphinx cannot read.
"""

import re
import sys

MEMBER = re.compile(r"^(?P<code>\s+[^/]*[;,]) +// (?!NOLINT)(?P<text>.*)$")
DESIGNATED = re.compile(r"\{\.\w+ = .*\};")


def description(lines):
    yield "/** \\file"
    verbatim = False
    for line in lines:
        text = line.removeprefix("//")
        if text and text.startswith("   ") != verbatim:
            verbatim = not verbatim
            yield "\\verbatim" if verbatim else "\\endverbatim"
        yield text.removeprefix("   " if verbatim else " ")
    if verbatim:
        yield "\\endverbatim"
    yield "*/"


def declarations(lines):
    private = False
    for line in lines:
        private = (private or line == " private:") and line != "};"
        if private:
            continue
        line = DESIGNATED.sub(";", line)
        member = MEMBER.match(line)
        yield f"{member['code']} ///< {member['text']}" if member else line


def main(path):
    with open(path, encoding="utf-8") as file:
        lines = file.read().splitlines()
    top = next(i for i, line in enumerate(lines) if not line.startswith("//"))
    print("\n".join([*description(lines[:top]), *declarations(lines[top:])]))


if __name__ == "__main__":
    sys.stdout.reconfigure(encoding="utf-8")
    main(sys.argv[1])
