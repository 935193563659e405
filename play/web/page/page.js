"use strict";
// The page is drawn by the server. This sends what was clicked, typed or chosen, and morphs what comes back in place,
// so that the focus, a press that has begun and the position in a list stay.
(() => {
  const page = document.getElementById("page");
  const gone = document.getElementById("gone");
  let socket = null;
  let desk = sessionStorage.getItem("desk") || "";

  const send = (what) => {
    if (socket && socket.readyState === WebSocket.OPEN) socket.send(JSON.stringify(what));
  };

  const morph = (old, fresh) => {
    if (old.nodeType !== fresh.nodeType || old.nodeName !== fresh.nodeName) return old.replaceWith(fresh);
    if (old.nodeType !== Node.ELEMENT_NODE) {
      if (old.data !== fresh.data) old.data = fresh.data;
      return;
    }
    for (const { name } of [...old.attributes]) if (!fresh.hasAttribute(name)) old.removeAttribute(name);
    for (const { name, value } of fresh.attributes) if (old.getAttribute(name) !== value) old.setAttribute(name, value);
    const [mine, theirs] = [[...old.childNodes], [...fresh.childNodes]];
    theirs.forEach((node, k) => (k < mine.length ? morph(mine[k], node) : old.append(node)));
    mine.slice(theirs.length).forEach((node) => node.remove());
    if (old.nodeName === "SELECT" || (old.nodeName === "INPUT" && old !== document.activeElement)) {
      const value = old.nodeName === "SELECT" ? fresh.value : fresh.getAttribute("value") || (old.name ? old.value : "");
      if (old.value !== value) old.value = value;
    }
  };

  let looked = "";
  const show = ({ html, title, lang }) => {
    const had = page.querySelector(".modal");
    const fresh = page.cloneNode(false);
    fresh.innerHTML = html;
    morph(page, fresh);
    document.title = title;
    document.documentElement.lang = lang;
    const modal = page.querySelector(".modal");
    const wanted = (modal && !had && modal.querySelector("button")) || page.querySelector("input[autofocus]");
    if (wanted && wanted !== document.activeElement) wanted.focus();
    const look = page.querySelector("[data-look]"); // a card below it may have been pressed
    if (look && looked && look.dataset.look !== looked) look.scrollIntoView({ block: "nearest" });
    looked = look ? look.dataset.look : "";
    if (document.activeElement !== document.body && !page.contains(document.activeElement)) document.activeElement.blur();
  };

  const connect = () => {
    socket = new WebSocket(`${location.href.split(/[?#]/)[0].replace(/^http/, "ws")}ws?desk=${encodeURIComponent(desk)}`);
    socket.onmessage = ({ data }) => {
      const told = JSON.parse(data);
      gone.hidden = true;
      if (told.desk) sessionStorage.setItem("desk", (desk = told.desk));
      else show(told);
    };
    socket.onclose = () => {
      gone.hidden = false;
      setTimeout(connect, 1000);
    };
  };

  const press = (button) => {
    if ("theme" in button.dataset) {
      const dark = getComputedStyle(document.documentElement).getPropertyValue("--is-dark").trim() === "1";
      document.documentElement.dataset.theme = dark ? "light" : "dark";
    } else send({ do: button.dataset.do, value: button.dataset.value });
  };

  page.addEventListener("click", ({ target }) => {
    const button = target.closest("button[data-do], button[data-theme]");
    if (button) press(button);
  });
  page.addEventListener("change", ({ target }) => {
    const { do: what, key } = target.dataset;
    if (what) send({ do: what, value: target.value, key });
  });
  page.addEventListener("submit", (event) => {
    event.preventDefault();
    send({ do: event.target.dataset.do, value: event.target.elements[0].value });
  });

  // Arrows move along a row of buttons; the other keys are those written on the buttons.
  const along = (name, root) => {
    const row = (document.activeElement.closest && document.activeElement.closest("[data-arrows]")) || root.querySelector("[data-arrows]");
    const buttons = row ? [...row.querySelectorAll("button")] : [];
    const at = buttons.indexOf(document.activeElement);
    const step = name === "ArrowLeft" || name === "ArrowUp" ? -1 : 1;
    const free = buttons.findIndex((button) => !button.hasAttribute("aria-disabled"));
    const next = at < 0 ? Math.max(free, 0) : (at + step + buttons.length) % buttons.length;
    if (buttons[next]) buttons[next].focus();
    return buttons.length > 0;
  };
  document.addEventListener("keydown", (event) => {
    const typing = ["INPUT", "SELECT", "TEXTAREA"].includes(event.target.nodeName);
    const onButton = event.target.nodeName === "BUTTON" && (event.key === "Enter" || event.key === " ");
    if (event.ctrlKey || event.metaKey || event.altKey || typing || onButton) return;
    const name = event.key === " " ? "Space" : event.key.length === 1 ? event.key.toLowerCase() : event.key;
    const root = page.querySelector(".modal") || page;
    const button = [...root.querySelectorAll("button[data-keys]")].find((each) => each.dataset.keys.split(" ").includes(name));
    if (button) press(button);
    else if (!name.startsWith("Arrow") || !along(name, root)) return;
    event.preventDefault();
  });
  connect();
})();
