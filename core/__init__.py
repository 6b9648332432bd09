"""Models, states, the gate, grafts and the use cases. torch lives here; gradio must not."""
