"""Cryptography of the oblivious map: sealing and opening of pages (AES-128-GCM), permutation of keys, draws.

Golden models are `sim.golden.oram.aes`, `.gcm` and `.front`. A page has P bytes: 16 with its tag, then its
ciphertext; sealed commands and responses have the same shape. A beat has 16 L bytes for L lanes, and a page
takes B = P / (16 L) cycles::

    key ─► KeySchedule ──┬─ round keys, constant ─────────────► all AES lanes
            81 cycles    └─ hash key ─► PowerTable ── powers ─► the tables of all Ghash
                                         2 + 5 (P / 16 - 1) cycles

    {page, version} ─► Keystream: L x AesLane ─► 32 beats ahead     a beat a cycle: no wait where the version
                        1 + 10 rounds             1                 is known 12 cycles before the data

    PageOpen   cycle  0        1          2      3         4      5        6       7          8
                      beat ─┬─ ^ keystream ──────────────────────────────────────────────────────► o in 1
                            └─ held ───── parts  products  sums   whole    rest    difference  verdict in 8
                               └────────────────── Ghash ───────────────────┘
                                  L x GfProducts           one for all lanes

    PageSeal          beat ─── ^ keystream ─┬─ Ghash, as above ─────────────┐
                                            └─ buffer of a page ────────────┴ read ─── ^ tag ──► o in 8

    Front      key ─► 4 rounds of 11 cycles or a few more, the draw beside the last ─► {permuted, draw} in 45
               (interval 5: a lane), 51 (interval 4: two lanes)

**The tag costs no cycle.** A page's text and tag need as many counter blocks as it has blocks: block 1 masks
the tag, blocks 2, 3, ... the text. The block with the length is hashed in the tag's place. So slot s of a
page uses counter s + 1, and every cycle is a beat of data.

**No product waits for another.** Slot s is multiplied by its own power of the hash key, computed when the key
changed. All steps behind the 27 products of 16 bits are linear: lanes and beats are added first, then
combined and reduced once. A lane costs its products alone.

**Back-pressure.** Inputs are streams, and may pause at any time. Outputs follow after a fixed latency and
cannot be stalled. Their time depends on the arrival of beats and requests, never on keys or content.

Yosys counts (``synth_xilinx -family xcup``; with the longest path as `sim.timing` estimates it, of 3.148 ns
that 300 MHz leave on the U55C); ``pytest -m soak tests/hw/oram/core/crypto/test_gates.py`` holds them::

    unit                                              LUTs   flip-flops   longest path
    AesLane; a round is 720, 512 of them S-boxes   7,248        1,409        1.52 ns
    GfMultiplier; its products are 4,356           5,070        2,085        1.52 ns
    KeySchedule                                      761        1,873        1.55 ns
    PowerTable, P = 256                            5,196        2,351        1.52 ns
    PageOpen, P = 256, L = 4                      49,260       15,270        1.83 ns
    PageSeal, P = 256, L = 4                      49,550       15,897        1.83 ns
    PageOpen, P = 64, L = 1                       13,762        4,788        1.72 ns
    PageSeal, P = 64, L = 1                       13,811        5,031        1.72 ns
    Front, a draw, interval 4: two lanes          14,572        3,160        1.52 ns
    Front, a draw, interval 5: a lane              8,846        1,719        1.52 ns
"""
