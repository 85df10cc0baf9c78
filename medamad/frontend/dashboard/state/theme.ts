// The theme: light, dark, or the system's. Stored in this browser.

import { effect, signal } from "@preact/signals";
import { local } from "./local-storage.ts";

export const THEMES = ["system", "light", "dark"] as const;
export type Theme = (typeof THEMES)[number];

const KEPT = "medamad.theme";
const darkness = matchMedia("(prefers-color-scheme: dark)");

function kept(): Theme {
  const text = local?.getItem(KEPT);
  return THEMES.find((theme) => theme === text) ?? "system";
}

export const theme = signal<Theme>(kept());

/** Whether the page is dark at the moment. */
export const isDark = signal(false);

effect(() => {
  const chosen = theme.value;
  if (chosen === "system") {
    local?.removeItem(KEPT);
    delete document.documentElement.dataset.theme;
  } else {
    local?.setItem(KEPT, chosen);
    document.documentElement.dataset.theme = chosen;
  }
  isDark.value = chosen === "system" ? darkness.matches : chosen === "dark";
});

darkness.addEventListener("change", () => {
  if (theme.value === "system") isDark.value = darkness.matches;
});
