"""Channels that are held back at random."""

import random

CHANNELS = ("aw_channel", "w_channel", "b_channel", "ar_channel", "r_channel")


def stalls(generator, share):
    """Holds a channel back in a share of the cycles."""
    while True:
        yield generator.random() < share


def hold_back(sides, generator):
    """Holds back every channel of reading and writing sides of AXI and AXI-Lite, each in its own cycles."""
    for side in sides:
        for channel in (getattr(side, name) for name in CHANNELS if hasattr(side, name)):
            channel.set_pause_generator(stalls(random.Random(generator.random()), 0.3))
