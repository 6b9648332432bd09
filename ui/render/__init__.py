"""The only place where text becomes HTML. Imports no Gradio, so that it can be tested by itself."""
