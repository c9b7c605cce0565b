"""Small engines, and jobs of one or two layers whose tensors lie at address 0."""

from hw.conv.config import ConvConfig
from hw.conv.driver.form import MapForm
from hw.conv.driver.maps import MapPlace
from hw.conv.driver.plan import JobPlaces, plan_job
from hw.conv.driver.route import Rearrangement


def small(**changes):
    """An engine with room for small maps only."""
    return ConvConfig(
        **{
            **{"lanes": 16, "taps": 2, "inputs": 8, "outputs": 8, "ports": 2, "strip_words": 16},
            **{
                "bank_words": 256,
                "tap_words": 128,
                "dot_words": 64,
                "offset_entries": 512,
                "fraction_bits": 3,
            },
            **{"block_pixels": 32, "block_words": 1024, "bypass_words": 128},
            **changes,
        }
    )


def place(config, form, *, half=False):
    return MapPlace(form=form, addresses=(0,) * config.ports, half=half)


def plan(config, *layers, source=None, result=None, bypass=None, beat_bits=128, **changes):
    """Plan a job; maps have the forms that layers ask for unless others are given."""
    first, last = layers[0], layers[-1]
    shuffle = changes.get("rearrangement", Rearrangement()).shuffle
    source = source or MapForm(channels=first.channels, groups=first.offset_group)
    copies = 2 if shuffle else 1
    given = (
        source
        if last is first and last.group == last.channels == last.outputs
        else MapForm(channels=copies * last.outputs, groups=last.offset_group if last is not first else 1)
    )
    bypass = bypass or (place(config, MapForm(channels=last.outputs)) if shuffle else None)
    places = JobPlaces(
        source=source if isinstance(source, MapPlace) else place(config, source),
        result=result if isinstance(result, MapPlace) else place(config, result or given),
        bypass=bypass,
    )
    return plan_job(config, layers, places, beat_bits=beat_bits, **changes)
