"""SIGTERM and Ctrl-C: finish the step, save, leave. A second one ends the process at once."""

from __future__ import annotations

import os
import signal
import threading
from types import FrameType, TracebackType
from typing import Any


class StopSignal:
    """Within its `with` block, the first SIGTERM or SIGINT is only noted.

    `number` is None until then, and the signal's number after. From then on the system's own handling is in
    force, so a second signal ends the process at once.
    """

    SIGNALS = (signal.SIGTERM, signal.SIGINT)

    def __init__(self) -> None:
        self.number: int | None = None
        self._former: dict[int, Any] = {}
        self._owner = os.getpid()

    def __enter__(self) -> StopSignal:
        # Python delivers signals to the main thread only; training in another one hears none.
        if threading.current_thread() is threading.main_thread():
            for number in self.SIGNALS:
                self._former[number] = signal.signal(number, self._note)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._former.items():
            signal.signal(number, handler)

    @property
    def exit_code(self) -> int:
        """128 + the signal's number, as shells report it: 143 for SIGTERM, 130 for Ctrl-C.

        A process that stops because another rank got a signal ends as after SIGTERM.
        """
        return 128 + (self.number or signal.SIGTERM)

    def _note(self, number: int, frame: FrameType | None) -> None:
        # A forked loader worker inherits this handler and shares the terminal's Ctrl-C: it goes on
        # until the training process ends it.
        if os.getpid() == self._owner:
            self.number = number
            for each in self.SIGNALS:
                signal.signal(each, signal.SIG_DFL)
