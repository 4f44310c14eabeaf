"""Calls over HTTP, for code that runs where only HTTP reaches."""

from hatchway.transports.http.transport import TOKEN_VARIABLE, URL_VARIABLE, HttpCallbackTransport

__all__ = ["TOKEN_VARIABLE", "URL_VARIABLE", "HttpCallbackTransport"]
