# An ordinary command-line program.
# transparency: -- --help
# transparency: --
# transparency: -- build --size 3 -q name
# transparency: -- build --size three
# transparency: -- -v --json out.json -o file
# transparency: -- --version
import argparse
import json
import sys


def build(options):
    print(json.dumps(vars(options), default=lambda o: getattr(o, "__name__", str(o)), sort_keys=True))
    return options.size + 1 if options.size else 0


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__, epilog="the end")
    parser.add_argument("--version", action="version", version="%(prog)s 1.0")
    parser.add_argument("-v", "--verbose", action="count", default=0)
    parser.add_argument("--json")
    parser.add_argument("-o", "--output")
    commands = parser.add_subparsers(dest="command")
    command = commands.add_parser("build", help="build it")
    command.add_argument("--size", type=int, default=0)
    command.add_argument("-q", "--quiet", action="store_true")
    command.add_argument("name", nargs="?")
    command.set_defaults(function=build)
    options = parser.parse_args(argv)
    if options.command is None:
        print("no command", options)
        return 2
    return options.function(options)


if __name__ == "__main__":
    sys.exit(main())
