"""Exchange: requests to a vendor, with their retries, their deadline, and a container that may be gone."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Set
from contextlib import aclosing
from dataclasses import replace
from typing import Any

from hatchway.core.errors import CodeTimeoutError
from hatchway.core.limits import Limits
from hatchway.hosted.code import Answer, Item, Telemetry
from hatchway.hosted.context import Turn
from hatchway.hosted.failures import Failure
from hatchway.hosted.supply import told_places
from hatchway.hosted.telling import Teller
from hatchway.hosted.vendor import Ask, Received


class Exchange:
    """The requests of one turn. `new` is what was said in it; the session gets it when the turn is over."""

    def __init__(self, turn: Turn, limits: Limits, teller: Teller) -> None:
        self._turn = turn
        self._adapter = turn.adapter
        self._vendor = turn.adapter.vendor
        self._limits = limits
        self._teller = teller
        self.new: list[Item] = []
        self.prompt: str | None = None
        self.telemetry: list[Telemetry] = []
        self.ran = 0.0
        """Seconds spent at the vendor."""
        self._has_recovered = False
        self._has_resupplied = False
        self._before: tuple[bool, dict[str, str], dict[str, str]] | None = None
        """Which files the session had, where files are part of what is said: such are lost with a turn that fails."""
        self._is_stripped = False
        """Whether files of earlier turns were taken out of the history, to be said again."""
        self._has_begun = False
        """Whether a stream told something: it is not begun again, so that nothing is told twice."""
        self._last: tuple[str | None, int] = (None, 1)

    @property
    def said(self) -> list[Item]:
        """Everything that was said, in earlier turns too."""
        return [*self._turn.session.history, *self.new]

    def state(self) -> dict[str, Any]:
        """As JSON, for a checkpoint."""
        files = {"before": self._before, "is_stripped": self._is_stripped}
        return {"new": self.new, "ran": self.ran, "has_recovered": self._has_recovered, **files}

    def load(self, state: Mapping[str, Any]) -> None:
        """Go on from what `state` gave."""
        self.new, self.ran, self._has_recovered = list(state["new"]), state["ran"], state["has_recovered"]
        before = state.get("before")
        self._before, self._is_stripped = before and tuple(before), state.get("is_stripped", False)

    def undo(self) -> None:
        """The turn failed: files that were said in it are brought again by the next."""
        if self._before is None:
            return
        session, (is_supplied, placed, brought) = self._turn.session, self._before
        session.brought = {name: session.brought[name] for name in brought if name in session.brought}
        session.placed = {} if self._is_stripped else placed
        session.is_supplied = is_supplied and not self._is_stripped

    async def ask(self) -> Item:
        """One response, whole.

        Raises:
            CodeTimeoutError: The deadline passed.
            InvalidSetting, SandboxUnavailable, TransportError: The vendor refused, is busy, or cannot be reached.
        """
        left = self._left()
        began = time.monotonic()
        self._teller.asking()
        try:
            async with asyncio.timeout(left):
                if self.prompt is not None:
                    prompt, self.prompt = self.prompt, None
                    self.new += self._vendor.spoken(prompt, await self._files())
                return await self._asked()
        except TimeoutError:
            raise CodeTimeoutError(
                f"{self._adapter.provider} was not done after {self.ran + time.monotonic() - began:.1f} s",
                stdout=self._teller.stdout,
                stderr=self._teller.stderr,
                hint="raise Limits.wall_seconds or the deadline; the session is as it was before",
            ) from None
        finally:
            self.ran += time.monotonic() - began

    def taken(self, answer: Answer) -> None:
        """A response was read: it is part of what was said, and tells of its container."""
        session, (request_id, attempts) = self._turn.session, self._last
        self.new += answer.items
        if answer.container is not None:
            session.container = answer.container
        telemetry = Telemetry(
            provider=self._adapter.provider,
            model=answer.model or self._adapter.model,
            request_id=request_id,
            response_id=answer.response_id,
            input_tokens=answer.input_tokens,
            output_tokens=answer.output_tokens,
            max_output_tokens=self._adapter.max_output_tokens,
            container_id=session.container.id if session.container else None,
            memory_limit=self._vendor.memory_limit(self._adapter.offer.code),
            attempts=attempts,
            streamed=self._turn.streams,
        )
        self.telemetry.append(telemetry)
        self._teller.requested(telemetry)

    async def _asked(self) -> Item:
        attempt = 1
        while True:
            request = self._vendor.request(self._request())
            try:
                received = await self._received(request)
            except Exception as e:
                failure = self._vendor.failure(e, request)
                if failure is None:
                    raise
                if failure.kind in ("busy", "unreachable") and self._has_begun:
                    failure = replace(failure, kind="broken", message=f"the stream broke off: {failure.message}")
                if failure.is_passing(attempt, self._adapter.retries):
                    await asyncio.sleep(failure.wait(attempt))
                elif (missed := failure.misses(self._vendor.files_said(self.said))) and not self._has_resupplied:
                    await self._resupply(missed)
                elif failure.kind == "gone" and not self._has_recovered:
                    await self._recover(failure)
                else:
                    self._teller.failed(failure.request_id)
                    raise failure.error(self._adapter.provider) from e
                attempt += 1
                continue
            self._last = (received.request_id, attempt)
            lost = self._vendor.lost(received.response)
            if lost is None or self._has_recovered:
                return received.response
            await self._recover(lost)
            attempt += 1

    async def _received(self, request: Mapping[str, Any]) -> Received:
        if not self._turn.streams:
            return await self._vendor.send(request)
        fold, request_id = self._vendor.fold(), None
        self._has_begun = False
        try:
            async with aclosing(self._vendor.stream(request)) as events:
                async for event in events:
                    self._has_begun = True
                    request_id = event.pop("_request_id", request_id)
                    self._teller.live(fold.feed(event))
            return Received(response=fold.response(), request_id=request_id)
        except BaseException:
            self._teller.live(fold.rest())
            raise

    async def _recover(self, failure: Failure) -> None:
        """The container is gone: history without it, for good, and another container."""
        self._has_recovered = True
        self._strip()
        session = self._turn.session
        lost = session.container.id if session.container else self._vendor.fixed_container(self._adapter.offer.code)
        session.container = None
        session.lost |= {lost or ""}
        session.history = self._vendor.cleaned(session.history)
        self.new = self._vendor.cleaned(self.new)
        self._teller.lost(lost or "", failure.message)
        session.placed = {}
        if files := await self._files(is_again=True):
            self.new = [*self._vendor.spoken("The files are here again.", files), *self.new]

    async def _resupply(self, missed: Set[str]) -> None:
        """Files that were said are not at the vendor any more: said without them, for good, and brought again."""
        self._has_resupplied = True
        self._strip()
        session = self._turn.session
        self._adapter.uploads.forget(missed)
        session.forget(missed)
        session.history = self._vendor.without_files(session.history, missed)
        self.new = self._vendor.without_files(self.new, missed)
        if files := await self._files(is_again=True):
            self.new = [*self._vendor.spoken("The files are here again.", files), *self.new]

    async def _files(self, *, is_again: bool = False) -> list[Item]:
        before = self._supply()
        said = await self._adapter.supply.bring(self._adapter.offer.code, self._turn, is_again=is_again)
        if said and self._before is None:
            self._before = before
        return said

    def _strip(self) -> None:
        if self._vendor.files_said(self._turn.session.history):
            self._is_stripped = True
            self._before = self._before or self._supply()

    def _supply(self) -> tuple[bool, dict[str, str], dict[str, str]]:
        session = self._turn.session
        return session.is_supplied, dict(session.placed), dict(session.brought)

    def _request(self) -> Ask:
        adapter, turn = self._adapter, self._turn
        options = turn.options
        return Ask(
            model=adapter.model,
            offer=adapter.offer,
            history=self.said,
            instructions=told_places(adapter.instructions, turn.session),
            container=turn.session.container,
            lost=turn.session.lost,
            tool_choice=options.get("tool_choice") if not self.telemetry else None,
            output_schema=options.get("output_schema"),
            max_output_tokens=adapter.max_output_tokens,
            settings=adapter.settings,
        )

    def _left(self) -> float:
        left = self._limits.wall_seconds - self.ran
        turn = self._turn.left()
        return max(0.0, left if turn is None else min(left, turn))
