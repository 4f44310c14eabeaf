"""What a person is told when something fails."""

import click
import pytest
from openai import AsyncOpenAI
from pydantic_ai import exceptions
from pydantic_ai.direct import model_request
from pydantic_ai.messages import ModelRequest
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

from hatchway.cli.failing import VENDOR, failure_text
from hatchway.cli.objects import error_object
from hatchway.core.errors import InvalidSetting

pytestmark = pytest.mark.anyio


def http_error(category: type[Exception], status: int, body: object) -> Exception:
    made = exceptions.ModelHTTPError.for_category(category, status_code=status, model_name="m", body=body)  # pyright: ignore
    assert isinstance(made, Exception)
    return made


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (
            http_error(exceptions.ModelAuthenticationError, 401, {"error": {"message": "Incorrect API key"}}),
            "the vendor refuses the key (401): Incorrect API key\nset another key, or name another model with --model",
        ),
        (
            http_error(exceptions.ModelRateLimitError, 429, {"message": "slow down"}),
            "the vendor limits the rate (429): slow down\nwait a while and say it again",
        ),
        (
            exceptions.ModelConnectionError("m", "Connection error."),
            "the vendor cannot be reached: Connection error.\n"
            "see that the network or the server is up, and say it again",
        ),
        (
            exceptions.ModelTimeoutError("m", "Request timed out."),
            "the vendor did not answer in time: Request timed out.\n"
            'say it again; "timeout" in "model-settings" of .hatchway/config.json is how many seconds it may take',
        ),
        (InvalidSetting("no", hint="do"), "no\ndo"),
        (click.UsageError("wrong"), "wrong"),
        (KeyError("x"), "KeyError: 'x'"),
    ],
)
def test_an_error_says_what_happened_and_what_to_do(error: Exception, told: str) -> None:
    assert failure_text(error) == told


def test_a_program_is_told_what_a_person_is_told() -> None:
    assert error_object(exceptions.ModelConnectionError("m", "Connection error.")) == {
        "type": "ModelConnectionError",
        "message": "the vendor cannot be reached: Connection error.",
        "hint": "see that the network or the server is up, and say it again",
    }
    assert error_object(KeyError("x")) == {"type": "KeyError", "message": "'x'", "hint": ""}


def test_every_name_is_one_of_pydantic_ai_the_narrow_before_the_wide() -> None:
    known = [getattr(exceptions, name) for name in VENDOR]
    for place, wide in enumerate(known):
        assert not any(issubclass(narrow, wide) for narrow in known[place + 1 :])


async def test_a_server_that_cannot_be_reached_is_named_without_what_may_be_secret() -> None:
    url = "http://user:pass@127.0.0.1:9/v1/key"
    model = OpenAIChatModel(
        "m", provider=OpenAIProvider(openai_client=AsyncOpenAI(base_url=url, api_key="k", max_retries=0))
    )
    with pytest.raises(exceptions.ModelConnectionError) as refused:
        await model_request(model, [ModelRequest.user_text_prompt("hello")])
    assert failure_text(refused.value) == (
        "the vendor cannot be reached at http://127.0.0.1:9: Connection error.\n"
        "see that the network or the server is up, and say it again"
    )
