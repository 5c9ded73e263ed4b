"""A protocol: how a map becomes boxes, and which overlap is a hit. Nothing but data."""

from wsol.localization.extraction import Extraction
from wsol.scoring.protocols import Protocol, register_protocol

register_protocol(
    Protocol(
        "tight",
        "cut at half of the map's range, largest component, more than IoU 0.5",
        Extraction(fixed=0.5, box="largest component"),
        strict_top=True,
        strict_known=True,
    )
)
