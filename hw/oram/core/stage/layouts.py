"""Layouts of the streams between the parts of the stage."""

from typing import Any

from amaranth.hdl import unsigned
from amaranth.lib import data

from hw.oram.config import VERSION_BITS, OramConfig
from hw.oram.core.layouts import STATUS_BITS, Code, Status, touch_layout


def response_layout(config: OramConfig) -> data.StructLayout:
    """Return a row of a response: its value before the operation, and with ``first`` the other fields."""
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
    """Return a row of a command's value for the value RAM."""
    return data.StructLayout(
        {
            "operation": config.operation_bits,
            "row": range(max(2, config.value_rows)),
            "data": 8 * config.row_bytes,
        }
    )


def item_layout(config: OramConfig) -> data.StructLayout:
    """Return a touch, its number in its operation, and the operation's place (``turn``) in the log."""
    return data.StructLayout(
        {
            "touch": touch_layout(config),
            "index": range(config.items + config.label_count),
            "turn": range(config.window),
            "search": 1,  # the operation's item exists, and moves or is removed
        }
    )


def place_layout(config: OramConfig) -> data.StructLayout:
    """Return a place in the log of records: the touched ones by touch, then the fresh ones by label."""
    kinds = config.items + config.label_count
    return data.StructLayout({"turn": range(config.window), "kind": range(kinds)})


def state_layout(config: OramConfig) -> data.StructLayout:
    """Return a record's state: its bitmap, and with two labels the items of its page and list together."""
    most = config.record_slots + config.slots if config.label_count == 2 else 0
    return data.StructLayout({"bitmap": config.record_slots, "load": range(most + 1)})


def done_layout(config: OramConfig) -> data.StructLayout:
    """Return the loop's results for a touch."""
    slot, entry = range(config.record_slots), range(config.overflow_entries)
    return data.StructLayout(
        {
            "item": item_layout(config),
            #: ``in_page``, ``in_list``, ``in_log``, ``in_overflow``: the operation's item lies there; at most
            #: one is set. ``log_turn``, ``own_entry``: its index in the log, and in the overflow.
            "in_page": 1,
            "in_list": 1,
            "in_log": 1,
            "in_overflow": 1,
            "log_turn": range(config.window),
            "own_entry": entry,
            #: ``version``, ``page_items``, ``bitmap``: header of the record: the page's next version and
            #: items, the list's bitmap.
            "version": VERSION_BITS,
            "page_items": range(config.slots + 1),
            "bitmap": config.record_slots,
            #: ``retried``, ``retry_entry``, ``retry_slot``, ``retry_key``: an overflow item moved into the
            #: list.
            "retried": 1,
            "retry_entry": entry,
            "retry_slot": slot,
            "retry_key": config.key_bits,
            #: ``listed``, ``fresh``, ``fresh_bitmap``, ``fresh_slot``: the operation's item was appended to a
            #: list: its record, new bitmap and slot.
            "listed": 1,
            "fresh": unsigned(config.record_index_bits),
            "fresh_bitmap": config.record_slots,
            "fresh_slot": slot,
            #: ``stored``, ``stored_entry``: it was stored in the overflow.
            "stored": 1,
            "stored_entry": entry,
        }
    )


def searches(touch: Any) -> Any:
    """Return whether the touch's operation takes an item from its place."""
    takes = (touch.code == Code.GET) | (touch.code == Code.PUT) | (touch.code == Code.DELETE)
    return takes & (touch.status == Status.HIT)
