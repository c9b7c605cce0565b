"""Packages: the files that Vitis or Vivado needs beside the Verilog, all from one argument table.

=====================  ==========================================================================
file                   for
=====================  ==========================================================================
``<kernel>.v``         the kernel
``DSP48E2.v``          attention: a model of that cell, for simulators and linters; not for Vivado
``<kernel>.h``         register offsets, C and C++
``meta.json``          configuration, hash, versions, argument table, list of files
``host.py``            carries out a launch folder: pyxrt on Alveo, PYNQ on Zynq
``loomwork_host``      the host library, which that script calls, and programs may
``package_kernel.tcl`` Alveo: Vivado IP that Vitis accepts
``gen_xo.tcl``         Alveo: ``.xo`` from it
``connectivity.cfg``   Alveo: which port on which memory channel
``regions.xdc``        which parts lie on which die, of a kernel that lies on several
``Makefile``           Alveo: ``.xclbin`` by ``v++``; Zynq: ``.bit`` by Vivado
``package_ip.tcl``     Zynq: Vivado IP for a block design
``block_design.tcl``   Zynq: block design with the IP, to a bitstream
=====================  ==========================================================================
"""

from hw.package.render import render
from hw.package.write import write_files, write_package

__all__ = ["render", "write_files", "write_package"]
