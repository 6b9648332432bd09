"""The page in the browser. Shows what the engine says and passes on what a person does; decides nothing itself."""

from __future__ import annotations

import os

# Gradio reads these at its import. With analytics on it resolves outside hosts before it serves a page.
os.environ["GRADIO_ANALYTICS_ENABLED"] = "False"
os.environ["GRADIO_SSR_MODE"] = "False"
os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
