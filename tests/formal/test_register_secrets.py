"""Secret words of the register file, for all time: written once, until the lock, and never read."""

import pytest
from amaranth.hdl import Cat, Elaboratable, Module, Mux, Signal

from hw.lib.arguments import Argument, ArgumentKind, ArgumentTable
from hw.lib.registers import RegisterFile
from tests.formal.register_requests import Requests, free_inputs
from tests.support.proofs.formal import PropertyFailure, bounded, check, cover, free, prove, reach
from tests.support.proofs.mutants import mutant

#: A secret word and its lock.
SECRETS = ArgumentTable(
    (
        Argument(name="k", kind=ArgumentKind.SCALAR, doc="a key", secret=True),
        Argument(name="l", kind=ArgumentKind.SCALAR, doc="the lock", locks=True),
        Argument(name="cycles", kind=ArgumentKind.COUNTER, doc="cycles"),
    )
)
SECRET_WORD, LOCK_WORD = 0x10, 0x18


class SecretSpec(Elaboratable):
    """The register file between a manager and a body that do anything: a secret word and its lock."""

    def __init__(self, cls=RegisterFile):
        self.dut = cls(SECRETS)

    def elaborate(self, platform):
        m = Module()
        m.submodules.dut = dut = self.dut
        free_inputs(m, dut)
        free(m, dut.forget)
        requests = Requests(m, dut.bus, dut.state)
        taken, locked, keyed = Signal(), Signal(), Signal()
        acted, place, word = Signal(), Signal(10), Signal(32)
        strobes, written = Signal(4), Signal(32)
        m.d.sync += [
            acted.eq(requests.writes(SECRET_WORD) | requests.writes(LOCK_WORD)),
            place.eq(dut.state.write_word),
            strobes.eq(requests.strobes),
            written.eq(requests.data),
        ]
        check(m, ~acted | (dut.bus.bvalid & (requests.data == written)), "data stay until they are written")
        of_secret, of_lock = (acted & (place == offset // 4) for offset in (SECRET_WORD, LOCK_WORD))
        first = of_secret & ~taken & ~locked
        check(m, dut.enables[SECRET_WORD] == Mux(first, strobes, 0), "a word takes its first write")
        check(m, dut.enables[LOCK_WORD] == Mux(of_lock, strobes, 0), "the lock takes all writes")
        with m.If(of_lock & strobes.any()):
            m.d.sync += locked.eq(1)
        with m.If(first & strobes.any()):
            m.d.sync += [
                taken.eq(1),
                word.eq(written & Cat(strobe.replicate(8) for strobe in strobes)),
            ]
        with m.If(~dut.state.running):
            m.d.sync += keyed.eq(taken)
        forgotten = Signal()
        m.d.sync += forgotten.eq(dut.forget)
        with m.If(dut.forget):
            m.d.sync += word.eq(0)
        check(m, ~forgotten | ((dut.state.args.k == 0) & (dut.args.k == 0)), "a forgotten secret is zero")
        check(m, taken | (word == 0), "a word that is not written is zero")
        check(m, dut.written[SECRET_WORD] == taken, "a word is written by its first strobe")
        check(m, dut.locked == locked, "a write of the lock with any strobe locks")
        check(m, dut.state.args.k == word, "a secret is its first write before the lock")
        check(m, dut.keyed == keyed, "it is keyed with its words, constant from start to done")
        for follow in dut.follows.values():
            check(m, follow == ~dut.state.running, "what is given follows what is written while nothing runs")
        for at in dut.places.values():
            right = at == requests.read_word[: len(at)]
            check(m, ~requests.read | right, "a place in a block is that of the word that is read")
        secret = requests.read_word == SECRET_WORD // 4
        check(m, ~(requests.answers & secret) | (dut.answer == 0), "secrets are sampled as zero")
        check(m, ~(dut.bus.rvalid & secret) | (dut.bus.rdata == 0), "secrets read zero")
        reach(m, dut.keyed & locked & (dut.args.k == 0x12345678), "a key is given and locked")
        return m


def test_secrets():
    assert prove(SecretSpec(), depth=1, pdr=False).method == "induction"
    cover(SecretSpec(), depth=10)


SECRET_BUGS = {
    "secrets read": (
        "if not register.argument.secret:",
        "if True:",
        "secrets read zero|secrets are sampled as zero",
    ),
    "taken again": (
        "return ~(self.written[offset] | self.locked)",
        "return ~self.locked",
        "a word takes its first write",
    ),
    "lock ignored": (
        "return ~(self.written[offset] | self.locked)",
        "return ~self.written[offset]",
        "a word takes its first write",
    ),
    "lock of the lowest byte alone": (
        "self.enables[register.offset].any()",
        "self.enables[register.offset][0]",
        "a write of the lock with any strobe locks",
    ),
    "the copy is not forgotten": (
        "[self.state.args[secret.name].eq(0), self.args[secret.name].eq(0)]",
        "self.state.args[secret.name].eq(0)",
        "a forgotten secret is zero",
    ),
    "keyed while it runs": (
        "with m.If(self.follows[self.table.secrets[-1].name]):",
        "with m.If(1):",
        "constant from start to done",
    ),
}


@pytest.mark.parametrize("bug", SECRET_BUGS)
def test_seeded_bug_of_secrets_is_found(bug):
    old, new, words = SECRET_BUGS[bug]
    with pytest.raises(PropertyFailure, match=words):
        bounded(SecretSpec(mutant(RegisterFile, old, new)), depth=10, reset="low", solver="sat")
