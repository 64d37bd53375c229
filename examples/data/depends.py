"""Package dependencies, one line a package, from `apt-cache dumpavail` on standard input.

    apt-cache dumpavail | python3 depends.py > debian12-depends.txt

Takes Depends and Pre-Depends with all alternatives, drops versions "(>= 1)" and architectures ":any",
keeps each dependency once, sorts by bytes.
"""
import re
import sys

print("# Debian 12: package dependency dependency ... (how it is made: README.md here)")
targets, package, field = {}, None, None
for line in sys.stdin:
    if not line.startswith(" "):  # a blank begins the continuation of the field above
        field, _, line = line.partition(":")
        if field == "Package":
            package = line.strip()
    if field in ("Depends", "Pre-Depends"):
        names = re.sub(r"\([^)]*\)|:\w+", "", line)
        targets.setdefault(package, set()).update(re.split(r"[,|\s]+", names.strip()))
for package in sorted(targets):
    print(package, *sorted(targets[package] - {""}))
