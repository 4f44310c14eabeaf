"""One action in a CPython guest, whatever holds the guest: the process, jail and container sandboxes share this.

The transport brings what the guest says, the pipes what it prints; the process can be killed and tells how it died;
the clock strikes when the time is over. All of it is taken in as it happens, whether or not anybody asks.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, assert_never

from hatchway.core.calls import FunctionCall, Waiting
from hatchway.core.errors import CodeExecutionError, CodeRuntimeError, HatchwayError, TransportError
from hatchway.core.limits import Limits
from hatchway.core.results import ExecutionResult, Tier, Usage
from hatchway.core.sandbox import OnDisplay, OnOutput
from hatchway.core.transport import Completed, Displayed, Failed
from hatchway.sandboxes.calling_execution import CallingExecution
from hatchway.sandboxes.clock import WallClock
from hatchway.sandboxes.displays import Gallery
from hatchway.sandboxes.endings import completed, died, failure, late, over
from hatchway.sandboxes.guest_process import Death, GuestChannel, GuestProcess
from hatchway.sandboxes.output_pipes import OutputPipes
from hatchway.sandboxes.recorded import Origin
from hatchway.transports.guest.wakeup import Wakeup
from hatchway.transports.guest_link import Said as Heard
from hatchway.transports.lines import ChannelLost

EOF_SECONDS = 0.5
"""A guest that closed its channel and is not dead after this is killed; the news of a death may come late."""

LEAVE_SECONDS = 0.004
"""How long a process whose action has ended is left alone: its end costs as much as the action, and whoever waited for
the result has something to do first."""


class GuestExecution(CallingExecution):
    """The handle of one action in a guest.

    Args:
        process: Where the guest runs.
        channel: How to speak with it.
        limits: What the action may take.
        tier: The wall around the process.
        is_session: The guest lives on when the action ends.
        on_output: Sees stdout and stderr as they come.
        on_end: Called once when the action has ended, before anybody is told.
    """

    def __init__(
        self,
        process: GuestProcess,
        channel: GuestChannel,
        *,
        limits: Limits,
        tier: Tier,
        is_session: bool = False,
        on_output: OnOutput | None = None,
        on_end: Callable[[], None] | None = None,
    ) -> None:
        super().__init__(process, limits)
        self._channel = channel
        self._tier: Tier = tier
        self._is_session, self._on_end = is_session, on_end
        self._cpu_before = process.cpu_seconds() if is_session else 0.0
        self._is_silent = False
        self._why: HatchwayError | None = None
        self._origin: Origin | None = None
        self._end: ExecutionResult | HatchwayError | None = None
        self.ended_at: float | None = None
        """When it ended, by the clock of the event loop."""
        self._stdout = self._stderr = ""
        self._is_told = False
        self._came = Wakeup(asyncio.get_running_loop())
        self._death: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._output = OutputPipes(process.stdout_fd, process.stderr_fd, limit=limits.output_bytes, on_output=on_output)
        self._gallery = Gallery(limits)
        self._clock = WallClock(limits.wall_seconds, self._cpu_seconds, self._on_time_over)

    async def begin(self, origin: Origin) -> None:
        """Order the guest to run an action.

        Raises:
            ValueNotPortable: An input cannot cross; nothing runs.
        """
        self._origin, action = origin, origin.recording
        self._offered = action.functions
        try:
            try:
                sending = await self._channel.execute(
                    action.code,
                    action.functions,
                    action.inputs,
                    self._limits,
                    is_session=self._is_session,
                    again=origin.again(),
                )
            finally:
                self._attend()
            if sending is not None:
                await asyncio.shield(sending)
        except TransportError:
            pass  # the guest is dead already; `next` tells how it died
        except BaseException as e:
            self._strike(CodeRuntimeError(f"the action could not be started: {e}"))
            raise

    def _attend(self) -> None:
        """Take in what happens from here on. After the order was sent: the guest is at work meanwhile."""
        self._output.open()
        self._process.watch(self._limits, self._on_death)
        self._channel.listen(self._on_said)

    async def next(self) -> FunctionCall | Waiting | ExecutionResult:
        """As the contract says."""
        while (event := self.poll()) is None:
            if self._came.is_awaited:
                raise RuntimeError("next() is already being awaited")
            if not self._channel.read_early():
                await self._came
        return event

    def poll(self) -> FunctionCall | Waiting | ExecutionResult | None:
        """As the contract says."""
        if self._end is not None:
            self._is_told = True
            if isinstance(self._end, HatchwayError):
                raise self._end.with_traceback(None)
            return self._end
        if self._unread:
            return self._unread.popleft()
        if self._is_idle:
            return Waiting(tuple(self._pending.values()))
        return None

    def watch_displays(self, on_display: OnDisplay) -> None:
        """As the contract says."""
        self._gallery.watch(on_display)

    @property
    def is_over(self) -> bool:
        """Whether the action has ended."""
        return self._end is not None

    @property
    def is_stranded(self) -> bool:
        """Whether its event loop was closed: nobody will ever hear of it again."""
        return self._death.get_loop().is_closed()

    async def cancel(self) -> None:
        """As the contract says."""
        if self._end is None:
            self._strike(CodeRuntimeError("the execution was cancelled"))
        self._is_told = True
        if not (self._is_session and self._end is not None):
            await asyncio.shield(self._death)

    async def abandon(self, why: HatchwayError) -> None:
        """As `cancel`, for a reason that `next` tells."""
        self._strike(why)
        await self.cancel()

    def _on_said(self, batch: list[Heard], claim: int | None) -> None:
        """Take in what the guest says. It may say anything, at any time."""
        for said in batch:
            if not self._is_alive:
                break
            if isinstance(said, FunctionCall):
                self._on_call(said)
            else:
                self._take(said)
        if claim is not None and claim == self._answered and self._pending and self._is_alive:
            self._is_idle = True
            self._clock.stand()
        self._came.wake()

    def _take(self, said: Displayed | Completed | Failed | EOFError | TransportError) -> None:
        match said:
            case Displayed():
                self._output.drain()
                if limit := self._gallery.hang(said):
                    self._strike(over(limit, f"the code showed more than its limit of {limit}"))
            case Completed(output=output):
                self._finish(lambda: self._result(output))
            case Failed():
                self._finish(lambda: failure(said, self._tier))
            case EOFError() | ChannelLost():  # its death says why
                asyncio.get_running_loop().call_later(EOF_SECONDS, self._on_silence)
            case TransportError():
                self._strike(CodeRuntimeError(f"the code broke the sandbox protocol: {said.message}"))
            case _:
                assert_never(said)

    def _on_time_over(self) -> None:
        self._strike(late(self._limits.wall_seconds))

    def _on_silence(self) -> None:
        """The channel is closed and nobody is dead: whatever the guest does, it can no longer tell."""
        if self._is_alive and not self._process.has_ended():
            self._is_silent = True
            self._process.kill()

    def _on_death(self, death: Death) -> None:
        """Everything of the guest is dead. What it had said before counts, unless it was killed for a reason."""
        self._channel.read_available()
        if self._end is None:
            # the kernel's word on a limit comes after the silence it caused, and says more
            why = self._why = died(death, is_silent=self._is_silent) if death.limit or self._why is None else self._why
            self._is_alive = False
            self._finish(lambda: why)
        if not self._death.done():
            self._death.set_result(None)

    def _strike(self, why: HatchwayError) -> None:
        """Kill the code; once it is dead, `next` raises `why`."""
        if self._is_alive:
            self._why = why
            self._is_alive = False
            self._is_idle = False  # it waits for nobody any more
            self._clock.stop()
            self._process.kill()

    def _finish(self, make_end: Callable[[], ExecutionResult | HatchwayError]) -> None:
        self._clock.stop()
        self._output.drain()
        self._stdout, self._stderr = self._output.close()
        end = make_end()
        if isinstance(end, CodeExecutionError):
            end.stdout, end.stderr, end.displays = self._stdout, self._stderr, self._gallery.displays
        self._end, self.ended_at = end, self._death.get_loop().time()
        self._is_alive = False
        self._unread.clear()
        if self._beside is not None:
            self._beside.end()
        self._channel.detach()
        if not self._is_session:
            asyncio.get_running_loop().call_later(LEAVE_SECONDS, self._process.retire)
        if self._on_end is not None:
            self._on_end()
        self._came.wake()

    def _result(self, output: Any) -> ExecutionResult:
        usage = Usage(
            wall_seconds=self._clock.ran,
            cpu_seconds=self._cpu_seconds(),
            memory_bytes=self._process.peak_memory(),
            calls=self._made,
        )
        return completed(output, (self._stdout, self._stderr), self._gallery.displays, usage, self._tier)

    def _cpu_seconds(self) -> float:
        return max(0.0, self._process.cpu_seconds() - self._cpu_before)
