// The header of a website: its name, a switch to others, and the pages open now.

import { ChevronDown, Code, Globe } from "lucide";
import { useState } from "preact/hooks";
import { useLocation } from "preact-iso";
import type { Live, Website } from "../api/types.ts";
import { t, tn } from "../i18n/index.ts";
import { useAsk } from "../state/data.ts";
import { at } from "../state/paths.ts";
import { shareId, sitePath } from "../state/share.ts";
import { nameOf } from "../ui/hostnames.ts";
import { Icon } from "../ui/icon.tsx";
import { later } from "../ui/lazy.tsx";
import { type Choice, Menu } from "../ui/menu.tsx";
import { useShortcuts } from "../ui/shortcuts.ts";
import { Unvisited } from "../ui/unvisited.tsx";
import { writeView } from "./address.ts";
import { useViewing } from "./page-state.ts";

const Limited = later(() => import("../ui/limited.tsx").then((part) => part.Limited));
const Switcher = later(() => import("./switcher.tsx").then(({ Switcher }) => Switcher));

/** A menu of more websites than this would be a long search. */
const MOST_IN_MENU = 8;

interface Properties {
  /** The pages open now; undefined if that is unknown. */
  live: Live | undefined;
  /** Show more of what is going on now. */
  showLive: () => void;
}

export function SiteHead({ live, showLive }: Properties) {
  const { hostname, view } = useViewing();
  const { route } = useLocation();
  const [isOpen, setOpen] = useState(false);
  const { data: websites } = useAsk<Website[]>(shareId ? null : "/websites");
  useShortcuts([
    { keys: "s", label: t("shortcuts.switch"), act: () => setOpen(true) },
    { keys: "l", label: t("live.title"), act: showLive },
  ]);

  const site = websites?.find((one) => one.hostname === hostname);
  // Filters of one website may not exist on another: only the period is kept.
  const elsewhere = writeView({ ...view, filters: [] });
  const go = (other: string) => route(sitePath(other) + elsewhere);
  const isSearched = (websites?.length ?? 0) > MOST_IN_MENU;
  const setup = `${sitePath(hostname)}/setup`;
  const choices = (websites ?? [{ hostname }]).map(
    (website): Choice => ({
      label: nameOf(website.hostname),
      isChosen: website.hostname === hostname,
      choose: () => go(website.hostname),
    }),
  );
  const further: Choice[] = [
    {
      label: (
        <>
          <Icon of={Code} size={16} /> {t("view.setup")}
        </>
      ),
      choose: () => route(setup),
    },
    {
      label: (
        <>
          <Icon of={Globe} size={16} /> {t("nav.websites")}
        </>
      ),
      choose: () => route(at("/dashboard/")),
    },
  ];
  return (
    <div class="site-head">
      <h1>
        {shareId ? (
          <span class="switcher-name">{nameOf(hostname)}</span>
        ) : isSearched ? (
          <span class="switcher">
            <button
              type="button"
              class="button"
              aria-haspopup="dialog"
              title={t("nav.switch")}
              onClick={() => setOpen(true)}
            >
              <span class="hidden">{t("nav.switch")}: </span>
              <span class="switcher-name">{nameOf(hostname)}</span>
              <Icon of={ChevronDown} size={14} />
            </button>
          </span>
        ) : (
          <Menu
            class="switcher"
            title={t("nav.switch")}
            label={<span class="switcher-name">{nameOf(hostname)}</span>}
            groups={[choices, further]}
            isOpen={isOpen}
            onToggle={setOpen}
          />
        )}
      </h1>
      {websites && isSearched && isOpen && (
        <Switcher websites={websites} setup={setup} choose={go} onClose={() => setOpen(false)} />
      )}
      <Unvisited since={site?.quietSince} />
      {site?.limitsReached && <Limited />}
      <button
        type="button"
        class={live ? "button live" : "button live unknown"}
        aria-haspopup="dialog"
        title={t("view.live-title")}
        onClick={showLive}
      >
        <OpenPages live={live} />
      </button>
    </div>
  );
}

/** The number of pages that are open now. */
export function OpenPages({ live }: { live: Live | undefined }) {
  return (
    <>
      <span class={live?.visitors ? "live-dot on" : "live-dot"} aria-hidden="true" />
      {tn("view.live", live?.visitors ?? 0)}
    </>
  );
}
