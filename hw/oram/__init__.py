"""The oblivious map: get, put and delete in host memory, of which the host learns nothing but when.

After BOLT (CCS 2025): HBM is a cache that the host cannot see.  What an operation does, its terms and its
formats are in ``docs/oram.md``, who may see what in ``docs/oram-threats.md``::

    host           commands                pages                                pages        responses
                      │                   ▲     │                                 ▲              ▲
                 CommandReader     page number  BlockReader                 BlockWriter   ResponseWriter
                      │                   │     │                                 │              │
    gates          Accept a(n)          Issue i(j) ──────────► Release q(j)       │              │
                      │                   ▲     │                 │ turn, beats   │              │
    core       CommandOpener              │     │             PageOpener      PageSealer   ResponseSealer
                   Front                  │     │                 │               ▲              ▲
                      │ query             │     │                 ▼               │              │
                   Position ──────────────┘     │               Stage ────────────┴──────────────┘
                    │    ▲   operation          │                ▲  │ beats
    HBM           Buckets: two tables         Records: lists, bins, versions

    cycles, V = 8:  command 73    HBM 288   rest 26 │ HBM 352   rest 30 │ turn to sealed page 31, response 36
                    └──── a(n) to i(j): 387 ────────┘ i(j) to q(j): 382 ┘

An operation is accepted every ``interval`` cycles (4 at V = 8 with four AES lanes), whatever it asks for:
the position map takes four, the stage's loop from touch to touch four, a page of 256 bytes four through the
ciphers each way.  All else is latency, which is fixed from each gate on, so that the host sees labels and its
own timing, and nothing of keys, kinds of operations or HBM.  HBM has until a gate's deadline; what comes
later stops the map.

What holds up a touch, as the counters have it: its page is under way (``page``), the host's bus (``host``),
as many are under way as may be (``credit``), or its time has not come (``deadline``).
"""
