// The terminal measures its font at the start, so the font must be loaded before.
window.addEventListener("DOMContentLoaded", async () => {
  document.getElementById("again").addEventListener("click", () => window.location.reload());
  await Promise.allSettled(
    ["", "bold ", "italic "].map((style) => document.fonts.load(style + '16px "Roboto Mono"')),
  );
  const script = document.createElement("script");
  script.src = document.body.dataset.terminal;
  // It waits for the load event, which may have passed.
  script.addEventListener("load", () => {
    const begin = window.onload;
    window.onload = null;
    begin(new Event("load"));
    document.querySelector(".xterm-helper-textarea").focus();
  });
  document.head.append(script);
});
