"""The vendors Pydantic AI knows: where their keys lie, a model to begin with, the package that speaks with them.

A table, so that the first screen waits for no library; a test holds it against the library itself.
"""

from __future__ import annotations

from typing import NamedTuple


class Vendor(NamedTuple):
    """One vendor."""

    prefix: str
    """What its models are called by: `prefix:model`."""
    keys: tuple[str, ...]
    """Variables of which one holds the key."""
    model: str
    """A model to begin with; empty where each customer has names of their own."""
    package: str = "openai"
    """The module that speaks with it."""
    extra: str = "openai"
    """What of `pydantic-ai-slim` brings that module."""
    needs: tuple[str, ...] = ()
    """Further variables, all of them."""


VENDORS = (
    Vendor("anthropic", ("ANTHROPIC_API_KEY",), "claude-sonnet-5", "anthropic", "anthropic"),
    Vendor("openai", ("OPENAI_API_KEY",), "gpt-5"),
    Vendor("google", ("GOOGLE_API_KEY", "GEMINI_API_KEY"), "gemini-flash-latest", "google.genai", "google"),
    Vendor("openrouter", ("OPENROUTER_API_KEY",), "openrouter/auto"),
    Vendor("mistral", ("MISTRAL_API_KEY",), "mistral-large-latest", "mistralai", "mistral"),
    Vendor("groq", ("GROQ_API_KEY",), "openai/gpt-oss-120b", "groq", "groq"),
    Vendor("deepseek", ("DEEPSEEK_API_KEY",), "deepseek-chat"),
    Vendor("xai", ("XAI_API_KEY",), "grok-4.7", "xai_sdk", "xai"),
    Vendor("cohere", ("CO_API_KEY",), "command-r-plus-08-2024", "cohere", "cohere"),
    Vendor("cerebras", ("CEREBRAS_API_KEY",), "gpt-oss-120b"),
    Vendor("moonshotai", ("MOONSHOTAI_API_KEY",), "kimi-latest"),
    Vendor("zai", ("ZAI_API_KEY",), "glm-5"),
    Vendor("alibaba", ("ALIBABA_API_KEY", "DASHSCOPE_API_KEY"), "qwen-max"),
    Vendor("meta", ("META_API_KEY",), "muse-spark-1.3"),
    Vendor("crusoe", ("CRUSOE_API_KEY",), "openai/gpt-oss-120b"),
    Vendor("together", ("TOGETHER_API_KEY",), "meta-llama/Llama-3.3-70B-Instruct-Turbo"),
    Vendor("fireworks", ("FIREWORKS_API_KEY",), "accounts/fireworks/models/llama-v3p3-70b-instruct"),
    Vendor("nebius", ("NEBIUS_API_KEY",), "Qwen/Qwen3-235B-A22B-Instruct-2507"),
    Vendor("ovhcloud", ("OVHCLOUD_API_KEY",), "gpt-oss-120b"),
    Vendor("sambanova", ("SAMBANOVA_API_KEY",), "Meta-Llama-3.3-70B-Instruct"),
    Vendor("heroku", ("HEROKU_INFERENCE_KEY",), "gpt-oss-120b"),
    Vendor("vercel", ("VERCEL_AI_GATEWAY_API_KEY", "VERCEL_OIDC_TOKEN"), "anthropic/claude-sonnet-4.5"),
    Vendor("gateway/openai", ("PYDANTIC_AI_GATEWAY_API_KEY", "PAIG_API_KEY"), "gpt-5"),
    Vendor("typesafe", ("TYPESAFE_API_KEY",), "jev-latest", "typesafe_sdk", "typesafe"),
    Vendor("snowflake", ("SNOWFLAKE_TOKEN",), "openai-gpt-5", needs=("SNOWFLAKE_ACCOUNT",)),
    Vendor("azure", ("AZURE_OPENAI_API_KEY",), "", needs=("AZURE_OPENAI_ENDPOINT", "OPENAI_API_VERSION")),
    Vendor("system-one", ("SYSTEM_ONE_API_KEY",), "", "pydantic_ai", "", needs=("SYSTEM_ONE_BASE_URL",)),
    Vendor("bedrock", ("AWS_BEARER_TOKEN_BEDROCK",), "us.anthropic.claude-sonnet-5", "boto3", "bedrock",
           needs=("AWS_DEFAULT_REGION",)),
    Vendor("google-cloud", ("GOOGLE_APPLICATION_CREDENTIALS",), "gemini-flash-latest", "google.genai", "google",
           needs=("GOOGLE_CLOUD_PROJECT",)),
    Vendor("github-copilot", ("GITHUB_COPILOT_API_KEY", "GITHUB_COPILOT_API_TOKEN", "COPILOT_GITHUB_TOKEN"), "gpt-5"),
    Vendor("huggingface", ("HF_TOKEN",), "Qwen/Qwen3-235B-A22B", "huggingface_hub", "huggingface"),
)  # fmt: skip
"""In the order in which they are taken when several keys are set."""


def vendor_of(model: str) -> Vendor | None:
    """The vendor of a model's name; None for one that is not in the table."""
    prefix = model.partition(":")[0]
    plain = prefix.removesuffix("-chat").removesuffix("-responses")
    return next((vendor for vendor in VENDORS if prefix == vendor.prefix or plain == vendor.prefix), None)
