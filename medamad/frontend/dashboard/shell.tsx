// What surrounds every page: the top bar, global shortcuts, connection errors.

import {
  Globe,
  Keyboard,
  LogOut,
  Menu as MenuIcon,
  Monitor,
  Moon,
  Settings as SettingsIcon,
  Sun,
} from "lucide";
import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { useLocation } from "preact-iso";
import { t } from "./i18n/index.ts";
import { at } from "./state/paths.ts";
import { logOut, user } from "./state/session.ts";
import { THEMES, type Theme, theme } from "./state/theme.ts";
import { Icon } from "./ui/icon.tsx";
import { later } from "./ui/lazy.tsx";
import { type Choice, Menu } from "./ui/menu.tsx";
import { useShortcuts } from "./ui/shortcuts.ts";
import { Away } from "./ui/trouble.tsx";

const Keys = later(() => import("./ui/keys.tsx").then(({ Keys }) => Keys));

const THEME_ICONS = { system: Monitor, light: Sun, dark: Moon };

export function Shell({ children }: { children: ComponentChildren }) {
  const { path, route } = useLocation();
  const shown = useRef(path);
  useEffect(() => {
    // The element that was pressed may be gone with its page: focus the new page.
    if (path !== shown.current && document.activeElement === document.body) {
      document.getElementById("content")?.focus({ preventScroll: true });
    }
    shown.current = path;
  }, [path]);
  const [showsKeys, setShowsKeys] = useState(false);
  useShortcuts([
    { keys: "?", label: t("shortcuts.help"), act: () => setShowsKeys(true) },
    { keys: "g w", label: t("shortcuts.websites"), act: () => route(at("/dashboard/")) },
    { keys: "g s", label: t("shortcuts.settings"), act: () => route(at("/dashboard/settings")) },
  ]);
  const themes = THEMES.map(
    (name: Theme): Choice => ({
      label: (
        <>
          <Icon of={THEME_ICONS[name]} size={16} /> {t(`theme.${name}`)}
        </>
      ),
      isChosen: theme.value === name,
      choose: () => {
        theme.value = name;
      },
    }),
  );
  const go = (path: string, icon: typeof Globe, label: string, keys?: string): Choice => ({
    label: (
      <>
        <Icon of={icon} size={16} /> {label}
      </>
    ),
    ...(keys && { keys }),
    choose: () => route(path),
  });
  return (
    <>
      <a class="skip" href="#content">
        {t("common.skip")}
      </a>
      <header class="bar">
        <a class="brand" href={at("/dashboard/")} aria-label="medamad">
          <img src={at("/dashboard/icon.svg")} alt="" width="28" height="28" />
          <span>medamad</span>
        </a>
        <nav class="bar-middle" aria-label={t("common.menu")}>
          <Page path={at("/dashboard/")} label={t("nav.websites")} />
          <Page path={at("/dashboard/settings")} label={t("nav.settings")} />
        </nav>
        <Menu
          plain
          align="end"
          title={t("common.menu")}
          label={<Icon of={MenuIcon} size={20} />}
          groups={[
            [
              go(at("/dashboard/"), Globe, t("nav.websites"), "g w"),
              go(at("/dashboard/settings"), SettingsIcon, t("nav.settings"), "g s"),
              {
                label: (
                  <>
                    <Icon of={Keyboard} size={16} /> {t("nav.shortcuts")}
                  </>
                ),
                keys: "?",
                choose: () => setShowsKeys(true),
              },
            ],
            themes,
            [
              {
                label: (
                  <>
                    <Icon of={LogOut} size={16} /> {t("nav.log-out")} ({user.value?.username})
                  </>
                ),
                choose: () => void logOut(),
              },
            ],
          ]}
        />
      </header>
      <Away />
      <div id="content" tabIndex={-1}>
        {children}
      </div>
      {showsKeys && <Keys onClose={() => setShowsKeys(false)} />}
    </>
  );
}

function Page({ path, label }: { path: string; label: string }) {
  const shown = useLocation().path;
  const isHere = path.endsWith("/")
    ? `${shown}/`.replace("//", "/") === path
    : shown.startsWith(path);
  return (
    <a href={path} {...(isHere && { "aria-current": "true" as const })}>
      {label}
    </a>
  );
}
