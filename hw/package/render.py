"""The text of every file of a design's package."""

import json
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from hw.design import Design
from hw.lib.arithmetic.models import models_of
from hw.package.context import c_comment, context, python_literal, tcl_word

#: The file that lists the others.
META = "meta.json"

TEMPLATES = Path(__file__).parent / "templates"
#: Copied as they are, the same for every kernel: the test bench, and the host library.
_TESTBENCH = Path(__file__).parent / "tb" / "testbench.py"
_HOST_LIBRARY = Path(__file__).parents[1] / "host" / "loomwork_host"

#: Template of each file, by family; ``{kernel}`` stands for the kernel's name.
_FILES = {
    "alveo": {
        "{kernel}.h": "header.h.j2",
        "package_kernel.tcl": "package_kernel.tcl.j2",
        "gen_xo.tcl": "gen_xo.tcl.j2",
        "connectivity.cfg": "connectivity.cfg.j2",
        "Makefile": "Makefile.j2",
        "host.py": "host.py.j2",
        "tb/Makefile": "Makefile_tb.j2",
    },
    "zynq": {
        "{kernel}.h": "header.h.j2",
        "package_ip.tcl": "package_ip.tcl.j2",
        "block_design.tcl": "block_design.tcl.j2",
        "Makefile": "Makefile_zynq.j2",
        "host.py": "host.py.j2",
        "tb/Makefile": "Makefile_tb.j2",
    },
}
#: Further file of a kernel on several dies.
_REGIONS = {"regions.xdc": "regions.xdc.j2"}


def render(design: Design) -> dict[str, str]:
    """Return the text of every file by name; ``meta.json``, which lists the others, is last."""
    own = sorted(design.templates.glob("*.j2")) if design.templates is not None else []
    environment = Environment(
        loader=FileSystemLoader([*{path.parent for path in own}, TEMPLATES]),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,
    )
    environment.filters |= {"tcl": tcl_word, "c": c_comment, "py": python_literal}
    variables = context(design)
    files = {f"{design.top_name}.v": design.verilog}
    files |= {path.name: path.read_text(encoding="utf-8") for path in models_of(design.verilog)}
    variables["sources"] = list(files)
    templates = _FILES[design.board.family] | (_REGIONS if variables["regions"] else {})
    for name, template in {**templates, **{path.stem: path.name for path in own}}.items():
        files[name.format(kernel=design.top_name)] = environment.get_template(template).render(variables)
    files["tb/testbench.py"] = _TESTBENCH.read_text(encoding="utf-8")
    for path in sorted(_HOST_LIBRARY.glob("*.py")):
        files[f"{_HOST_LIBRARY.name}/{path.name}"] = path.read_text(encoding="utf-8")
    meta = {**design.meta, "files": [*files, META]}
    files[META] = json.dumps(meta, indent=2, ensure_ascii=False) + "\n"
    return files
