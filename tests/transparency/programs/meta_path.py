# The finders that imports go through.
# transparency: differs="a finder waits for torch to be imported, and goes then"
import sys

print([getattr(finder, "__name__", type(finder).__name__) for finder in sys.meta_path])
