// The terminal measures its letters when it begins, so it may not begin before they are there.
window.addEventListener("DOMContentLoaded", async () => {
  document.getElementById("again").addEventListener("click", () => window.location.reload());
  await Promise.allSettled(
    ["", "bold ", "italic "].map((style) => document.fonts.load(style + '16px "Roboto Mono"')),
  );
  const script = document.createElement("script");
  script.src = document.body.dataset.terminal;
  // It waits for the load of a page that may be long over.
  script.addEventListener("load", () => {
    const begin = window.onload;
    window.onload = null;
    begin(new Event("load"));
    document.querySelector(".xterm-helper-textarea").focus();
  });
  document.head.append(script);
});
