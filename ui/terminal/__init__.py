"""The command line: the same engine as the page, in words or JSON. Imports neither gradio nor, by itself, torch."""
