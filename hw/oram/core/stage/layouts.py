"""What passes between the parts of the stage."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import unsigned
from amaranth.lib import data

from hw.oram.config import VERSION_BITS, OramConfig
from hw.oram.core.layouts import STATUS_BITS, Code, Status, touch_layout


def response_layout(config: OramConfig) -> data.StructLayout:
    """Return a row of a response: its value before the operation, and with ``first`` all the rest."""
    return data.StructLayout(
        {
            "first": 1,
            "operation": config.operation_bits,
            "status": STATUS_BITS,
            "key": config.key_bits,
            "value": 8 * config.row_bytes,
        }
    )


def value_write_layout(config: OramConfig) -> data.StructLayout:
    """Return a row of a command's value on its way into the value RAM."""
    return data.StructLayout(
        {
            "operation": config.operation_bits,
            "row": range(max(2, config.value_rows)),
            "data": 8 * config.row_bytes,
        }
    )


def item_layout(config: OramConfig) -> data.StructLayout:
    """Return a touch, which of its operation's it is, and its operation's place in the log."""
    return data.StructLayout(
        {
            "touch": touch_layout(config),
            "index": range(config.items + config.label_count),
            "turn": range(config.window),
            "search": 1,  # the operation's item is somewhere, and moves or goes
        }
    )


def place_layout(config: OramConfig) -> data.StructLayout:
    """Return a place in the log of records: those touched, by touch, then the fresh ones, by label."""
    kinds = config.items + config.label_count
    return data.StructLayout({"turn": range(config.window), "kind": range(kinds)})


def state_layout(config: OramConfig) -> data.StructLayout:
    """Return what a record holds: its slots in use, and to choose between two, how many items are in these
    and its page together.
    """
    most = config.list_slots + config.slots if config.label_count == 2 else 0
    return data.StructLayout({"bitmap": config.list_slots, "load": range(most + 1)})


def done_layout(config: OramConfig) -> data.StructLayout:
    """Return what the loop found and decided for a touch."""
    slot, entry = range(config.list_slots), range(config.overflow_entries)
    return data.StructLayout(
        {
            "item": item_layout(config),
            #: ``in_page``, ``in_list``, ``in_log``, ``in_overflow``: where the operation's item was; at most
            #: one, and with ``log_turn`` and ``own_entry`` more closely.
            "in_page": 1,
            "in_list": 1,
            "in_log": 1,
            "in_overflow": 1,
            "log_turn": range(config.window),
            "own_entry": entry,
            #: ``version``, ``page_items``, ``bitmap``: header of the record: the page's next version and
            #: items, the list's slots in use.
            "version": VERSION_BITS,
            "page_items": range(config.slots + 1),
            "bitmap": config.list_slots,
            #: ``retried``, ``retry_entry``, ``retry_slot``, ``retry_key``: an item of the overflow store went
            #: into the list.
            "retried": 1,
            "retry_entry": entry,
            "retry_slot": slot,
            "retry_key": config.key_bits,
            #: ``listed``, ``fresh``, ``fresh_bitmap``, ``fresh_slot``: the operation's item went into a list,
            #: whose bitmap is then this.
            "listed": 1,
            "fresh": unsigned(config.record_index_bits),
            "fresh_bitmap": config.list_slots,
            "fresh_slot": slot,
            #: ``stored``, ``stored_entry``: it went into the overflow store.
            "stored": 1,
            "stored_entry": entry,
        }
    )


def searches(touch: Any) -> Any:
    """Return whether the operation of a touch takes an item from its place."""
    takes = (touch.code == Code.GET) | (touch.code == Code.PUT) | (touch.code == Code.DELETE)
    return takes & (touch.status == Status.HIT)
