"""OpenAI: the Responses API with its code interpreter, containers and programs."""
