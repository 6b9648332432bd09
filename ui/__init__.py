"""The Gradio page: it shows what the engine says and passes on what people decide."""
