// Keys, copy buttons and the choice of light or dark. Sends nothing anywhere and decides nothing:
// a key presses a button that is on the page, and only while that button can be seen.
(() => {
  const KEYS = {
    a: "review-approve", r: "review-reject", s: "review-skip", f: "review-flag", u: "review-undo",
    ArrowRight: "review-next", ArrowLeft: "review-previous", "?": "review-help",
  };
  const THEME = "scion-theme";

  const typing = (target) => {
    const element = target instanceof Element ? target : null;
    return !element || element.closest("input, textarea, select, [contenteditable=''], [contenteditable='true']") !== null;
  };
  const button = (id) => {
    const found = document.getElementById(id);
    if (!found) return null;
    return found.matches("button") ? found : found.querySelector("button");
  };

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing || event.repeat) return;
    const id = KEYS[event.key];
    if (!id || typing(event.target)) return;
    // Arrow keys belong to sliders and radio groups while these have the focus.
    if (event.key.startsWith("Arrow") && event.target.closest("[role=radiogroup], [role=slider]")) return;
    const pressed = button(id);
    if (!pressed || pressed.disabled || pressed.offsetParent === null) return;
    event.preventDefault();
    pressed.click();
  });

  document.addEventListener("click", async (event) => {
    const copy = event.target.closest("[data-copy]");
    if (copy) {
      event.stopPropagation();
      try {
        await navigator.clipboard.writeText(copy.dataset.copy);
        copy.dataset.said = "copied";
      } catch {
        copy.dataset.said = "not copied";
      }
      setTimeout(() => { delete copy.dataset.said; }, 1200);
      return;
    }
    if (event.target.closest("[data-theme-toggle]")) {
      const dark = !document.body.classList.contains("dark");
      localStorage.setItem(THEME, dark ? "dark" : "light");
      paint();
    }
  }, true);

  // Gradio names every place for files alike, in other words than stand on it: its label and its own words say more.
  const nameUploads = () => {
    for (const place of document.querySelectorAll("button.upload-container[aria-label]")) {
      const label = place.closest(".block")?.querySelector("[data-testid=block-label]")?.textContent.trim();
      const said = `${label ? `${label}: ` : ""}${place.innerText.replace(/\s+/g, " ").trim()}`;
      if (place.getAttribute("aria-label") !== said) place.setAttribute("aria-label", said);
    }
  };
  let naming = 0;
  const changed = () => {
    naming ||= setTimeout(() => { naming = 0; nameUploads(); }, 300);
  };

  const paint = () => {
    const kept = localStorage.getItem(THEME);
    if (!document.body || !kept) return;
    document.body.classList.toggle("dark", kept === "dark");
  };
  const start = () => {
    paint();
    new MutationObserver(changed).observe(document.body, { childList: true, subtree: true });
    // Gradio sets its own choice once it has mounted.
    new MutationObserver(() => {
      const kept = localStorage.getItem(THEME);
      if (kept && document.body.classList.contains("dark") !== (kept === "dark")) paint();
    }).observe(document.body, { attributes: true, attributeFilter: ["class"] });
  };
  // Gradio may put this script into the page after the page was read.
  if (document.body) start();
  else document.addEventListener("DOMContentLoaded", start);
})();
