"""Values: the value that an operation found, its response, and its item's new value."""

from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from hw.lib.delay import delay
from hw.lib.memory import uninitialised
from hw.oram.config import OramConfig
from hw.oram.core.bits import select
from hw.oram.core.layouts import Code
from hw.oram.core.stage.capture import BANKS
from hw.oram.core.stage.layouts import done_layout, response_layout, value_write_layout
from hw.oram.core.stage.writer import change_layout


class Values(wiring.Component):
    """Takes each touch after all of its values have passed.

    Behaviour
    ---------
    A touch first reads the value of the operation's item, then that of an overflow item that moved, row by
    row. The first is written to the log and the overflow before the next touch reads it.
    """

    def __init__(self, config: OramConfig) -> None:
        self._config = config
        row, bank = range(max(2, config.value_rows)), range(BANKS)
        value = 8 * config.row_bytes
        super().__init__(
            {
                #: Values of commands, before their operation's touches.
                "command": In(stream.Signature(value_write_layout(config), always_ready=True)),
                #: ``start``, ``done``: a touch, constant for four cycles, or more with more rows.
                "start": In(1),
                "done": In(done_layout(config)),
                #: ``page_bank``, ``list_bank``, ``row``: the captured value to read.
                "page_bank": Out(bank),
                "list_bank": Out(bank),
                "row": Out(row),
                #: ``page_value``, ``list_value``: the values, a cycle after their addresses.
                "page_value": In(value),
                "list_value": In(value),
                #: Rows of the response, from three cycles after ``start`` of the operation's last touch.
                "response": Out(stream.Signature(response_layout(config), always_ready=True)),
                #: ``change``, ``changed_row``: changes of records, and the rows of their values.
                "change": Out(stream.Signature(change_layout(config), always_ready=True)),
                "changed_row": Out(stream.Signature(value, always_ready=True)),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        """Addresses, RAMs, output registers, selection."""
        m = Module()
        config = self._config
        rows, width = config.value_rows, 8 * config.row_bytes
        done, item, touch = self.done, self.done.item, self.done.item.touch

        # Cycle 0: addresses, first of the own item's rows, then of the other's.
        step = Signal(range(2 * rows))
        reads = Signal()
        active = Signal()
        now = Signal(range(2 * rows))
        m.d.comb += [active.eq(self.start | reads), now.eq(Mux(self.start, 0, step))]
        with m.If(active):
            m.d.sync += [step.eq(now + 1), reads.eq(now != 2 * rows - 1)]
        other = now >= rows
        row = Mux(other, now - rows, now)[: len(self.row)]
        banks = [Signal.like(self.page_bank, name=name) for name in ("page_bank", "list_bank")]
        with m.If(active & (now == 2 * rows - 1)):
            m.d.sync += [banks[0].eq(banks[0] + touch.page_valid), banks[1].eq(banks[1] + touch.record_valid)]
        m.d.comb += [self.row.eq(row), self.page_bank.eq(banks[0]), self.list_bank.eq(banks[1])]
        entry = Mux(other, done.retry_entry, done.own_entry)

        # Cycles 1 and 2: reads of the RAMs; no row is written in the cycle of its read.
        def ram(name: str, depth: int, address: Value) -> tuple[Any, Value]:
            memory = uninitialised(width=width, depth=depth * rows, ram_style="block")
            m.submodules[name] = memory
            read = memory.read_port()
            m.d.comb += [read.addr.eq(address * rows + row), read.en.eq(1)]
            return memory.write_port(), delay(m, f"{name}_read", read.data, 1, reset=False)

        command_write, given = ram("commands", 1 << config.operation_bits, touch.operation)
        log_write, logged = ram("log", config.window, done.log_turn)
        store_write, stored = ram("stored", config.overflow_entries, entry)
        sources = [
            (done.in_page, delay(m, "page_read", self.page_value, 1, reset=False)),
            (done.in_list, delay(m, "list_read", self.list_value, 1, reset=False)),
            (done.in_log, logged),
            (done.in_overflow, stored),
        ]
        found = done.in_page | done.in_list | done.in_log | done.in_overflow
        own_2, other_2 = (
            delay(m, "own", active & ~other, 2),
            delay(m, "other", active & other & done.retried, 2),
        )
        row_3 = delay(m, "row", row, 3, reset=False)
        own_3, other_3 = delay(m, "own_2", own_2, 1), delay(m, "other_2", other_2, 1)

        # Cycle 3: the value before the operation, and the value to write.
        old = Signal(width, reset_less=True)
        new = Signal(width, reset_less=True)
        if config.items > 1:
            held_write, held = ram("held", 1, Const(0, 1))
            has_held = Signal()
            sources.append((has_held & ~touch.first, held))
            m.d.comb += [held_write.addr.eq(row_3), held_write.data.eq(old), held_write.en.eq(own_3 & found)]
            with m.If(own_3 & (row_3 == rows - 1)):  # before that it belongs to earlier touches
                m.d.sync += has_held.eq(found | (has_held & ~touch.first))
        chosen = select(Cat(here for here, _ in sources), [value for _, value in sources])
        m.d.sync += [
            old.eq(chosen),
            new.eq(Mux(other_2, stored, Mux(touch.code == Code.GET, chosen, given))),
        ]
        ends = own_3 & touch.last
        m.d.comb += [
            command_write.addr.eq(self.command.payload.operation * rows + self.command.payload.row),
            command_write.data.eq(self.command.payload.data),
            command_write.en.eq(self.command.valid),
            log_write.addr.eq(item.turn * rows + row_3),
            log_write.data.eq(new),
            log_write.en.eq(ends & (done.listed | done.stored)),
            store_write.addr.eq(done.stored_entry * rows + row_3),
            store_write.data.eq(new),
            store_write.en.eq(ends & done.stored),
            self.changed_row.valid.eq((ends & done.listed) | other_3),
            self.changed_row.payload.eq(new),
        ]
        response = self.response.payload
        m.d.comb += [
            self.response.valid.eq(ends),
            response.first.eq(row_3 == 0),
            response.operation.eq(touch.operation),
            response.status.eq(touch.status),
            response.key.eq(touch.key),
            response.value.eq(old),
        ]
        self._change(m)
        return m

    def _change(self, m: Module) -> None:
        """Drive the changes of records, in the order of their rows."""
        done, touch = self.done, self.done.item.touch
        change = self.change.payload
        second, third = delay(m, "second", self.start, 1), delay(m, "third", self.start, 2)
        m.d.comb += [
            self.change.valid.eq(
                (self.start & touch.record_valid) | (second & done.listed) | (third & done.retried)
            ),
            change.record.eq(touch.record),
            change.header.eq(~third),
            change.with_page.eq(touch.page_valid & ~second),
            change.version.eq(done.version),
            change.bitmap.eq(done.bitmap),
            change.page_items.eq(done.page_items),
            change.item.eq(~self.start),
            change.slot.eq(done.retry_slot),
            change.key.eq(done.retry_key),
        ]
        with m.If(second):
            m.d.comb += [
                change.record.eq(done.fresh),
                change.bitmap.eq(done.fresh_bitmap),
                change.slot.eq(done.fresh_slot),
                change.key.eq(touch.key),
            ]
