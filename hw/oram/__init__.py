"""The oblivious map: get, put and delete in host memory; the host learns nothing but their times.

After BOLT (CCS 2025): HBM is a cache that the host cannot see.  ``docs/oram.md`` specifies operations, terms
and formats, ``docs/oram-threats.md`` the threat model::

    host           commands                pages                                pages        responses
                      │                   ▲     │                                 ▲              ▲
                 CommandReader     page number  BlockReader                 BlockWriter   ResponseWriter
                      │                   │     │                                 │              │
    control        Accept a(n)          Issue i(j) ──────────► Admit q(j)       │              │
                      │                   ▲     │                 │ turn, beats   │              │
    core       CommandOpener              │     │             PageOpener      PageSealer   ResponseSealer
                   Front                  │     │                 │               ▲              ▲
                      │ query             │     │                 ▼               │              │
                   Position ──────────────┘     │               Stage ────────────┴──────────────┘
                    │    ▲   operation          │                ▲  │ beats
    HBM           Buckets: two tables         Records: lists, bins, versions

    cycles, V = 8:  command 72    HBM 992   rest 32 │ HBM 984   rest 28 │ q(j) to sealed page 31, response 36
                    └──── a(n) to i(j): 1096 ───────┘ i(j) to q(j): 1012┘

Public times are decided by three controls, each after public events alone. `Accept` takes a command, at a(n).
`Issue` starts the reads of touch j, at i(j). `Admit` sends the touch into the stage, at q(j).

An operation is accepted every ``interval`` cycles, whatever its code: 4 at V = 8 with four AES lanes. The
position map takes four, the stage's loop four, and a page of 256 bytes four through the ciphers each way. All
else is fixed latency behind a control. So the host sees labels and its own timing, and nothing of keys, codes
or HBM. HBM has until the deadline of a control; a late answer stops the map. An operation that is alone in a
map at rest, which the host sees, has shorter deadlines: 275 and 209 cycles.

A page in flight is read all the same, but the stage takes it from `PageBuffer`, as the earlier touch left it.

Counters name the cause of a wait: an earlier touch of the page is under way (``page``), the host's bus
(``host``), the limit of operations in flight (``credit``), or a deadline to come (``deadline``).

Timing has one home for each kind. A part's latency is a constant of its class. The steps of the stage are in
`hw.oram.core.stage.schedule`. `hw.oram.movers.timing` adds both up along an operation's path, for the
deadlines of the controls. `hw.oram.model` holds prediction only, and `hw.oram.sizing` failure probabilities.
"""
