import { Preference, usePreference } from "../parts/preference.js";

const theme = new Preference("ambit.theme", ["system", "light", "dark"]);
export const themes = theme.values;
export type Theme = (typeof themes)[number];

/** Before the first paint, so that no light page flashes. */
export function applyTheme(): void {
  const current = theme.current();
  if (current === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = current;
}

export function setTheme(value: Theme): void {
  theme.set(value);
  applyTheme();
}

export const useTheme = () => usePreference(theme);
