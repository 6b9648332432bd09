"""The artifacts, their records, the audit log. Knows nothing of torch, transformers or gradio."""
