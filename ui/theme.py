"""The look: Gradio's own variables bound to ours, which stand once in assets/page.css, light and dark.

System fonts only: nothing is fetched.
"""

from __future__ import annotations

import inspect
from pathlib import Path

import gradio as gr

ASSETS = Path(__file__).parent / "assets"
STYLE = ASSETS / "page.css"
SCRIPT = ASSETS / "page.js"

_SANS = ("system-ui", "-apple-system", "Segoe UI", "Roboto", "Helvetica Neue", "Liberation Sans", "sans-serif")
_MONO = ("ui-monospace", "SF Mono", "Cascadia Mono", "Menlo", "Consolas", "Liberation Mono", "monospace")

_VALUES = {
    "body_background_fill": "var(--sc-ground)",
    "body_text_color": "var(--sc-ink)",
    "body_text_color_subdued": "var(--sc-quiet)",
    "body_text_size": "14px",
    "background_fill_primary": "var(--sc-sheet)",
    "background_fill_secondary": "var(--sc-ground)",
    "border_color_primary": "var(--sc-line)",
    "border_color_accent": "var(--sc-accent)",
    "border_color_accent_subdued": "var(--sc-line)",
    "color_accent": "var(--sc-accent)",
    "color_accent_soft": "var(--sc-accent-soft)",
    "link_text_color": "var(--sc-accent)",
    "link_text_color_hover": "var(--sc-accent-strong)",
    "link_text_color_visited": "var(--sc-accent)",
    "link_text_color_active": "var(--sc-accent-strong)",
    "block_background_fill": "transparent",
    "block_border_color": "var(--sc-line)",
    "block_border_width": "0px",
    "block_label_background_fill": "transparent",
    "block_label_border_width": "0px",
    "block_label_text_color": "var(--sc-quiet)",
    "block_label_text_size": "12px",
    "block_label_text_weight": "500",
    "block_title_text_color": "var(--sc-quiet)",
    "block_title_text_size": "12px",
    "block_title_text_weight": "500",
    "block_info_text_color": "var(--sc-quiet)",
    "block_info_text_size": "12px",
    "block_padding": "0px",
    "block_radius": "8px",
    "block_shadow": "none",
    "container_radius": "8px",
    "form_gap_width": "0px",
    "layout_gap": "12px",
    "panel_background_fill": "var(--sc-sheet)",
    "panel_border_color": "var(--sc-line)",
    "panel_border_width": "1px",
    "section_header_text_size": "13px",
    "section_header_text_weight": "600",
    "accordion_text_color": "var(--sc-ink)",
    "table_text_color": "var(--sc-ink)",
    "input_background_fill": "var(--sc-field)",
    "input_background_fill_focus": "var(--sc-field)",
    "input_background_fill_hover": "var(--sc-field)",
    "input_border_color": "var(--sc-edge)",
    "input_border_color_focus": "var(--sc-accent)",
    "input_border_color_hover": "var(--sc-edge)",
    "input_border_width": "1px",
    "input_padding": "8px 10px",
    "input_placeholder_color": "var(--sc-quiet)",
    "input_radius": "6px",
    "input_shadow": "none",
    "input_shadow_focus": "0 0 0 3px var(--sc-accent-soft)",
    "input_text_size": "14px",
    "slider_color": "var(--sc-accent)",
    "loader_color": "var(--sc-accent)",
    "checkbox_background_color": "var(--sc-field)",
    "checkbox_background_color_selected": "var(--sc-accent)",
    "checkbox_border_color": "var(--sc-edge)",
    "checkbox_border_color_focus": "var(--sc-accent)",
    "checkbox_border_color_selected": "var(--sc-accent)",
    "checkbox_label_background_fill": "transparent",
    "checkbox_label_background_fill_hover": "var(--sc-hover)",
    "checkbox_label_background_fill_selected": "var(--sc-accent-soft)",
    "checkbox_label_border_color": "var(--sc-line)",
    "checkbox_label_border_color_selected": "var(--sc-accent)",
    "checkbox_label_text_color": "var(--sc-ink)",
    "checkbox_label_text_color_selected": "var(--sc-ink)",
    "checkbox_label_text_size": "13px",
    "checkbox_label_padding": "4px 10px",
    "checkbox_label_shadow": "none",
    "error_background_fill": "var(--sc-bad-soft)",
    "error_border_color": "var(--sc-bad)",
    "error_text_color": "var(--sc-bad)",
    "error_icon_color": "var(--sc-bad)",
    "button_border_width": "1px",
    "button_transition": "background-color 120ms, border-color 120ms",
    "button_large_padding": "8px 16px",
    "button_large_radius": "6px",
    "button_large_text_size": "14px",
    "button_large_text_weight": "600",
    "button_medium_padding": "7px 14px",
    "button_medium_radius": "6px",
    "button_medium_text_size": "14px",
    "button_medium_text_weight": "500",
    "button_small_padding": "4px 10px",
    "button_small_radius": "6px",
    "button_small_text_size": "13px",
    "button_small_text_weight": "500",
    "button_primary_background_fill": "var(--sc-accent)",
    "button_primary_background_fill_hover": "var(--sc-accent-strong)",
    "button_primary_border_color": "var(--sc-accent)",
    "button_primary_border_color_hover": "var(--sc-accent-strong)",
    "button_primary_text_color": "var(--sc-on-accent)",
    "button_primary_text_color_hover": "var(--sc-on-accent)",
    "button_secondary_background_fill": "var(--sc-sheet)",
    "button_secondary_background_fill_hover": "var(--sc-hover)",
    "button_secondary_border_color": "var(--sc-edge)",
    "button_secondary_border_color_hover": "var(--sc-quiet)",
    "button_secondary_text_color": "var(--sc-ink)",
    "button_secondary_text_color_hover": "var(--sc-ink)",
    "button_cancel_background_fill": "var(--sc-sheet)",
    "button_cancel_background_fill_hover": "var(--sc-bad-soft)",
    "button_cancel_border_color": "var(--sc-bad)",
    "button_cancel_border_color_hover": "var(--sc-bad)",
    "button_cancel_text_color": "var(--sc-bad)",
    "button_cancel_text_color_hover": "var(--sc-bad)",
    "button_primary_shadow": "none",
    "button_primary_shadow_hover": "none",
    "button_primary_shadow_active": "none",
    "button_secondary_shadow": "none",
    "button_secondary_shadow_hover": "none",
    "button_secondary_shadow_active": "none",
    "shadow_drop": "none",
    "shadow_drop_lg": "none",
    "shadow_spread": "none",
}


def theme() -> gr.themes.Base:
    """Gradio's bare theme with our values; each holds for light and dark, as the variables behind them change."""
    base = gr.themes.Base(
        primary_hue="slate", neutral_hue="stone", text_size="sm", spacing_size="sm", radius_size="sm",
        font=_SANS, font_mono=_MONO,
    )  # fmt: skip
    known = inspect.signature(base.set).parameters
    values = dict(_VALUES)
    values.update({f"{name}_dark": value for name, value in _VALUES.items() if f"{name}_dark" in known})
    return base.set(**values)


def head() -> str:
    """What goes into the page's head, inline: our style and our script.

    The style is not given to Gradio as `css`, because it rewrites the selectors and loses what is inside `@media`.
    """
    style, script = STYLE.read_text(encoding="utf-8"), SCRIPT.read_text(encoding="utf-8")
    return f"<style>\n{style}\n</style>\n<script>\n{script}\n</script>"
