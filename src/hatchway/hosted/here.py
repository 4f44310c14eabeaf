"""Code of a vendor's model that runs here: told, and kept for the reply, as code at the vendor is."""

from __future__ import annotations

from dataclasses import dataclass, field

from hatchway.core.errors import CodeExecutionError, CodeTimeoutError
from hatchway.core.results import Display, ExecFile, ExecutionResult, Tier
from hatchway.hosted.code import HostedCodeCall, HostedCodeResult, HostedImage
from hatchway.mode.run import shown_text


@dataclass(slots=True)
class Here:
    """What code did here in one turn."""

    begun: int = 0
    codes: list[HostedCodeResult] = field(default_factory=list[HostedCodeResult])
    """How each piece ended."""
    files: dict[str, ExecFile] = field(default_factory=dict[str, ExecFile])
    """What it made, by name; the last of a name."""
    tier: Tier | None = None
    """The wall the last of it was behind."""

    def begin(self, action: str, sandbox: str) -> HostedCodeCall:
        """A piece of code is about to run."""
        self.begun += 1
        return HostedCodeCall(provider=sandbox, call_id=f"here_{self.begun}", language="python", code=action)

    def end(self, call: HostedCodeCall, end: ExecutionResult | CodeExecutionError) -> HostedCodeResult:
        """It ended."""
        self.files |= {file.name: file for file in end.files}
        self.codes.append(_told(call, end))
        return self.codes[-1]


def _told(call: HostedCodeCall, end: ExecutionResult | CodeExecutionError) -> HostedCodeResult:
    images = tuple(HostedImage(display=each) for each in end.images if isinstance(each, Display))
    if isinstance(end, ExecutionResult):
        return HostedCodeResult(call=call, status="ok", stdout=shown_text(end) or "", stderr=end.stderr, images=images)
    return HostedCodeResult(
        call=call,
        status="timeout" if isinstance(end, CodeTimeoutError) else "failed",
        stdout=end.stdout,
        stderr=f"{end.stderr}{end}",
        error_code=type(end).__name__,
        images=images,
    )
