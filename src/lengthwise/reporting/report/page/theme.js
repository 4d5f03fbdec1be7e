"use strict";

/* The theme: what the reader's system prefers, until the button says otherwise. */
const theme = {
  preferred: window.matchMedia("(prefers-color-scheme: dark)"),
  button: document.getElementById("theme"),
  listeners: [],

  get dark() {
    const chosen = document.documentElement.dataset.theme;
    return chosen ? chosen === "dark" : this.preferred.matches;
  },

  color(name) {
    return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
  },

  /* Of a pair of colours, the one of this theme. */
  of([light, dark]) {
    return this.dark ? dark : light;
  },

  changed() {
    this.button.textContent = this.dark ? "Light theme" : "Dark theme";
    this.listeners.forEach((listener) => listener());
  },
};

theme.button.addEventListener("click", () => {
  document.documentElement.dataset.theme = theme.dark ? "light" : "dark";
  theme.changed();
});
theme.preferred.addEventListener("change", () => theme.changed());
theme.button.textContent = theme.dark ? "Light theme" : "Dark theme";
