"""A turn of an agent whose code the vendor of its model runs: no code comes back, only what became of it."""

from __future__ import annotations

from dataclasses import replace

from hatchway.core.errors import CodeExecutionError, CodeTimeoutError, InvalidSetting
from hatchway.core.events import Emit
from hatchway.core.results import ExecFile
from hatchway.executors.conversation import Conversation, Part, Turn
from hatchway.executors.execution import CodeExecutionResult
from hatchway.executors.parts import CodeExecutionResultPart, ExecutableCodePart, Outcome
from hatchway.mode.models import ModelRequest, ModelResponse, RequestUsage, TextPart, UserPromptPart
from hatchway.mode.vendor_code import VendorAction, VendorTurn, VendorTurns


class VendorLoop:
    """One turn at a vendor.

    Args:
        name: Of the agent; events carry it.
        turns: Asks the vendor.
        conversation: What was said before; this turn is added to it.
        files: What the code finds there.
        emit: Sees each event as it happens.

    Raises:
        InvalidSetting: The conversation was begun elsewhere: a vendor knows nothing of it.
    """

    def __init__(
        self,
        name: str,
        turns: VendorTurns,
        conversation: Conversation,
        files: tuple[ExecFile, ...],
        emit: Emit,
    ) -> None:
        if conversation.messages and conversation.vendor_session is None:
            raise InvalidSetting(
                "this conversation was begun where code does not run at a vendor", hint="begin a new Conversation()"
            )
        self._name, self._turns, self._conversation, self._files, self._emit = name, turns, conversation, files, emit

    async def run(self, prompt: str, *, streams: bool) -> Turn:
        """The turn. One that fails leaves the conversation as it was."""
        conversation = self._conversation
        if conversation.vendor_session is None:
            conversation.vendor_session = self._turns.session()
        told = await self._turns.turn(
            prompt,
            session=conversation.vendor_session,
            files=self._files,
            emit=lambda event: self._emit(replace(event, agent_id=self._name)),
            streams=streams,
        )
        conversation.messages += [ModelRequest([UserPromptPart(prompt)]), ModelResponse([TextPart(told.text)])]
        return _turn(told)


def _turn(told: VendorTurn) -> Turn:
    return Turn(
        text=told.text,
        parts=tuple(part for action in told.actions for part in _parts(action)),
        rounds=len(told.actions),
        usage=RequestUsage(input_tokens=told.input_tokens, output_tokens=told.output_tokens),
    )


def _parts(action: VendorAction) -> tuple[Part, Part]:
    end = action.end
    result = CodeExecutionResult(
        stdout=end.stdout,
        stderr=str(end) if isinstance(end, CodeExecutionError) else end.stderr,
        output_files=(*end.files, *(end.displays if isinstance(end, CodeExecutionError) else end.images)),
        exit_code=action.exit_code,
        timed_out=isinstance(end, CodeTimeoutError),
    )
    code = ExecutableCodePart(action.code, action.language, id=action.call_id)
    return code, replace(CodeExecutionResultPart.of(result, id=action.call_id), outcome=_outcome(action))


def _outcome(action: VendorAction) -> Outcome:
    if isinstance(action.end, CodeTimeoutError):
        return Outcome.OutcomeDeadlineExceeded
    words = {True: Outcome.OutcomeOk, False: Outcome.OutcomeFailed, None: Outcome.OutcomeUnspecified}
    return words[action.success]
