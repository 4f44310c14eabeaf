"""Gemini: generateContent with its code execution tool."""
