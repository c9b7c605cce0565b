"""The Yosys side of `tests.support.proofs.formal`: one process per question, as Yosys exits on an error.

Run as ``python -m tests.support.proofs.worker``, with Yosys loaded once.  Every line of standard input is the
path of a job, which names an RTLIL file and a question.  A forked process writes the answer beside it as
JSON, and the solver's output to a log.  A line of standard output then has the exit status.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyosys
from pyosys import libyosys

#: Messages of `sat`, and their meaning.
VERDICTS = {
    "Induction step proven: SUCCESS!": "proved",
    "proved base case for": "held",
    "model found for base case: FAIL!": "failed",
    "Reached maximum number of time steps -> proof failed.": "undecided",
    "Interrupted SAT solver: TIMEOUT!": "undecided",
}

#: Cycles of the induction that merges registers: after one alone, copies of a queue are not merged.
STEPS = 2


class Bench:
    """A flattened spec whose properties have become one-bit wires.

    Every ``$check`` is evaluated in each cycle in which its enable is up, as in a clocked block with one
    clock. The failing cycle is then the last of the trace.
    """

    def __init__(self, rtlil: Path, job_dir: Path) -> None:
        self.dir = job_dir
        self.design = libyosys.Design()
        self.run(f"read_rtlil {rtlil}")
        self.run("hierarchy -top top")
        self.run("proc")
        self.run("flatten")
        self.run("memory -nomap")
        self.run("memory_map -formal")
        self.properties = self._properties()
        self.run("opt -full -keepdc")
        self.run("async2sync")
        self.run("dffunmap")
        # A bit nobody drives, or that is undefined, may be anything; `sat` alone would read it as zero.
        self.run("setundef -undriven -anyseq")
        self.run("setundef -anyseq")
        self.run("opt_clean")

    def run(self, command: str) -> None:
        libyosys.run_pass(command, self.design)

    def _properties(self) -> list[dict[str, Any]]:
        """Replace each ``$check`` by wires ``<kind>_<n>_on`` (enabled) and ``<kind>_<n>_hit`` (see below).

        ``hit`` of a cover is the covered event; of an assertion, a violation; an assumption keeps no ``hit``.
        """
        module = self.design.top_module()
        name = libyosys.IdString
        found = []
        for cell in module.selected_cells():
            if cell.type.str() != "$check":
                continue
            parameters = {key.str(): value for key, value in cell.parameters.items()}
            attributes = {key.str(): value for key, value in cell.attributes.items()}
            source = attributes["\\src"].decode_string() if "\\src" in attributes else "?"
            found.append(
                {
                    "kind": parameters["\\FLAVOR"].decode_string(),
                    "message": parameters["\\FORMAT"].decode_string(),
                    "source": source,
                    "cell": cell,
                }
            )
        counts: dict[str, int] = {}
        violations = libyosys.SigSpec(libyosys.Const(0, 1))
        # Cell names have the order of elaboration: sorted, equal specs have equal runs.
        for entry in sorted(found, key=lambda item: (len(item["cell"].name.str()), item["cell"].name.str())):
            cell = entry.pop("cell")
            number = counts[entry["kind"]] = counts.get(entry["kind"], -1) + 1
            label = entry["label"] = f"{entry['kind']}_{number}"
            value = cell.getPort(name("\\A"))
            enable = cell.getPort(name("\\EN"))
            if entry["kind"] == "assume":
                module.addAssume(name(f"\\{label}"), value, enable)
            else:
                wanted = value if entry["kind"] == "cover" else module.Not(name(f"${label}_not"), value)
                hit = module.And(name(f"${label}_and"), wanted, enable)
                self._wire(f"{label}_hit", hit)
                if entry["kind"] == "assert":
                    violations = module.Or(name(f"${label}_or"), violations, hit)
            self._wire(f"{label}_on", enable)
            module.remove(cell)
        self._wire("violation", violations)
        for entry in found:
            entry.pop("cell", None)
        return sorted(found, key=lambda item: item["label"])

    def _wire(self, label: str, value: Any) -> None:
        module = self.design.top_module()
        wire = module.addWire(libyosys.IdString(f"\\{label}"), 1)
        wire.set_bool_attribute(libyosys.IdString("\\keep"), True)
        module.connect(libyosys.SigSpec(wire), value)

    def ask(
        self, label: str, options: str, *, reset: str, seconds: int, assumes: bool = True
    ) -> dict[str, Any]:
        """Run `sat` on "wire ``label`` is never 1" and read its verdict and trace."""
        log = self.dir / f"{label}.log"
        trace = self.dir / f"{label}.trace.json"
        trace.unlink(missing_ok=True)
        has_reset = any(wire.name.str() == "\\rst" for wire in self.design.top_module().selected_wires())
        constraint = "-set rst 0" if reset == "low" and has_reset else ""
        start = time.monotonic()
        self.run(
            f"tee -q -o {log} sat {options} -prove {label} 0 -set-assumes {constraint} "
            f"-timeout {seconds} -show-public -dump_json {trace} top"
        )
        text = log.read_text()
        answer: dict[str, Any] = {"verdict": "undecided", "seconds": time.monotonic() - start}
        for words, verdict in VERDICTS.items():
            if words in text:
                answer["verdict"] = verdict
        answer["depth"] = text.count("** Trying induction with length")
        if trace.exists():
            signals = json.loads(trace.read_text())["signal"]
            answer["trace"] = {signal["name"]: values(signal) for signal in signals}
        return answer

    def cover(self, depth: int, *, reset: str, seconds: int) -> dict[str, dict[str, Any]]:
        """Say of every event whether it can come up, and in which cycle at the earliest."""
        wanted = [
            f"{entry['label']}_{'hit' if entry['kind'] == 'cover' else 'on'}" for entry in self.properties
        ]
        return self.bmc(wanted, depth, reset=reset, seconds=seconds)

    def bmc(
        self, labels: Sequence[str], depth: int, *, reset: str, seconds: int
    ) -> dict[str, dict[str, Any]]:
        """Ask ABC's bounded model checking for the first cycle in which each of ``labels`` can be 1.

        It is many times as quick as `ask` and shows no trace.  Returns of each a verdict: ``failed`` with the
        ``depth`` a trace needs, ``held``, or ``undecided``.
        """
        outputs, text, spent = self._abc(labels, f"bmc3 -a -F {depth} -T {seconds}", reset=reset)
        asserted = re.findall(r"Output +(\d+) was asserted in frame +(\d+)", text)
        first = {outputs[int(output)]: int(frame) + 1 for output, frame in asserted}
        searched = re.search(r"(?:No output asserted in|Some outputs are SAT .* after) (\d+) frames", text)
        rest = "held" if not outputs or (searched and int(searched[1]) >= depth) else "undecided"
        return {
            label: {"verdict": "failed", "depth": first[label], "seconds": spent}
            if label in first
            else {"verdict": rest if label in outputs.values() else "held", "depth": depth, "seconds": spent}
            for label in labels
        }

    def pdr(self, *, reset: str, seconds: int) -> dict[str, Any]:
        """Ask ABC's property directed reachability, which finds inductive invariants by itself.

        Returns verdict ``proved``, ``failed`` with the ``depth`` a trace needs, or ``undecided``.
        """
        _, text, spent = self._abc(["violation"], f"pdr -T {seconds}", reset=reset)
        answer: dict[str, Any] = {"verdict": "undecided", "seconds": spent}
        if "Property proved" in text:
            answer["verdict"] = "proved"
        elif "asserted in frame" in text:
            answer["verdict"] = "failed"
            answer["depth"] = int(text.split("asserted in frame")[1].split(".")[0]) + 1
        return answer

    def correspond(self, labels: Sequence[str], depth: int, *, reset: str, seconds: int) -> dict[str, Any]:
        """Search ``depth`` cycles for a violation; then merge registers that are always equal, and ask PDR.

        Returns verdict ``proved``, or ``open`` with the bounded verdicts of ``labels``.
        """
        found: dict[str, Any] = {}
        if depth:
            found = self.bmc(labels, depth, reset=reset, seconds=seconds)
            if any(one["verdict"] == "failed" for one in found.values()):
                return {"verdict": "open", "bounded": found}
        merged = self.dir / "merged.aig"
        script = f"scorr -F {STEPS}; write_aiger {merged}; pdr -T {seconds}"
        _, text, spent = self._abc(["violation"], script, reset=reset)
        if output_literals(merged.read_bytes()) == [0] or "Property proved" in text:
            return {"verdict": "proved", "seconds": spent}
        return {"verdict": "open", "bounded": found}

    def _abc(self, labels: Sequence[str], command: str, *, reset: str) -> tuple[dict[int, str], str, float]:
        """Run ABC on "none of ``labels`` is ever 1"; return labels by output, ABC's output and seconds.

        Constant outputs have no label.
        """
        start = time.monotonic()
        self.run("design -push-copy")
        module = self.design.top_module()
        wires = {wire.name.str(): wire for wire in module.selected_wires()}
        name = libyosys.IdString
        for wire in wires.values():
            wire.port_output = False
        for label in labels:
            # ABC stops at constant or equal outputs: an output with a free bit is neither, and as reachable.
            may = module.Anyseq(name(f"$may_{label}"), 1)
            event = module.And(name(f"$event_{label}"), libyosys.SigSpec(wires[f"\\{label}"]), may)
            output = module.addWire(name(f"\\event_{label}"), 1)
            output.port_output = True
            module.connect(libyosys.SigSpec(output), event)
        module.fixup_ports()
        if reset == "low" and "\\rst" in wires:
            low = module.Not(name("$rst_low"), libyosys.SigSpec(wires["\\rst"]))
            module.addAssume(name("\\rst_low"), low, libyosys.SigSpec(libyosys.Const(1, 1)))
        self.run("setattr -unset keep")
        self.run("formalff -clk2ff -ff2anyinit")
        self.run("setundef -undriven -anyseq")
        self.run("opt -full")
        self.run("techmap")
        self.run("aigmap")
        self.run("opt_clean")
        aig, names = self.dir / "model.aig", self.dir / "model.map"
        self.run(f"write_aiger -I -zinit -no-startoffset -map {names} {aig}")
        self.run("design -pop")
        abc = Path(pyosys.__file__).with_name("yosys-abc")
        script = f"read_aiger {aig}; fold; strash; {command}"
        done = subprocess.run([abc, "-c", script], capture_output=True, text=True, check=True)
        found = re.findall(r"^output (\d+) 0 event_(\w+)$", names.read_text(), re.MULTILINE)
        return {int(number): label for number, label in found}, done.stdout, time.monotonic() - start


def output_literals(aiger: bytes) -> list[int]:
    """Read the literal of each output of a binary AIGER file; 0 is the constant 0."""
    header, *lines = aiger.split(b"\n")
    latches, outputs = (int(field) for field in header.split()[3:5])
    return [int(line) for line in lines[latches : latches + outputs]]


def values(signal: dict[str, Any]) -> list[int]:
    """Read one row of a WaveJSON trace; its first column, the state before the first cycle, is dropped.

    ``=`` takes the next of ``data``, and a dot repeats.  ``4``, the first column of a signal without a
    register, has no value but a place in ``data``.
    """
    data = iter(signal.get("data", []))
    row: list[int] = []
    for column in signal["wave"]:
        if column == ".":
            row.append(row[-1])
        elif column == "=":
            row.append(int(next(data).replace("x", "0"), 2))
        elif column == "4":
            next(data, None)
            row.append(0)
        else:
            row.append(int(column))
    return row[1:]


def answer(job: dict[str, Any], directory: Path) -> dict[str, Any]:
    """Answer one job; see `tests.support.proofs.formal` for the questions."""
    bench = Bench(Path(job["rtlil"]), directory)
    depth, reset, seconds = job["depth"], job["reset"], job["seconds"]
    result: dict[str, Any] = {"properties": bench.properties}
    if job["question"] == "prove":
        result["induction"] = found = bench.ask(
            "violation", f"-tempinduct -maxsteps {depth}", reset=reset, seconds=seconds
        )
        if found["verdict"] == "undecided" and job["pdr"]:
            result["pdr"] = pdr = bench.pdr(reset=reset, seconds=seconds)
            if pdr["verdict"] == "failed":
                base = f"-tempinduct-baseonly -maxsteps {max(depth, pdr['depth'])}"
                result["induction"] = bench.ask("violation", base, reset=reset, seconds=seconds)
    elif job["question"] == "bounded":
        verdict = {"verdict": "failed"}
        if job["solver"] == "abc":
            verdict = bench.bmc(["violation"], depth, reset=reset, seconds=seconds)["violation"]
        if verdict["verdict"] == "failed":  # to be shown by a trace
            base = f"-tempinduct-baseonly -maxsteps {depth}"
            verdict = bench.ask("violation", base, reset=reset, seconds=seconds)
        result["bounded"] = verdict
    elif job["question"] == "alike":
        labels = [f"{entry['label']}_hit" for entry in bench.properties if entry["kind"] == "assert"]
        result["alike"] = bench.correspond(labels, depth, reset=reset, seconds=seconds)
    else:
        result["covers"] = bench.cover(depth, reset=reset, seconds=seconds)
    return result


def serve() -> None:
    """Answer jobs until standard input ends."""
    for line in sys.stdin:
        job_path = Path(line.strip())
        if child := os.fork():
            print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
            continue
        with job_path.with_suffix(".log").open("wb") as log:
            os.dup2(log.fileno(), 1)
            os.dup2(log.fileno(), 2)
        job = json.loads(job_path.read_text())
        job_path.with_suffix(".answer.json").write_text(json.dumps(answer(job, job_path.parent)))
        return


if __name__ == "__main__":
    serve()
