"""Room 2, maps: backbones, taps, heads and the localizer they compose."""
