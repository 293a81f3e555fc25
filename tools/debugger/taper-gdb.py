"""What gdb loads beside libtaper.so, or by `source`: finds the scripts and loads them."""
import pathlib
import sys

here = pathlib.Path(__file__).resolve().parent
prefix = str(here).split("/share/gdb/auto-load/")[0]
home = here if (here / "taper_gdb.py").exists() else pathlib.Path(prefix) / "share/taper/debugger"
if str(home) not in sys.path:
    sys.path.insert(0, str(home))
import taper_gdb  # noqa: E402,F401
