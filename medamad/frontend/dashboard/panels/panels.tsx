// All panels of a website's page, with their tabs and full lists.

import { ChevronDown, ListTree } from "lucide";
import { useId, useState } from "preact/hooks";
import type { Summary } from "../api/types.ts";
import { t } from "../i18n/index.ts";
import { Icon } from "../ui/icon.tsx";
import { later } from "../ui/lazy.tsx";
import { Menu } from "../ui/menu.tsx";
import { useStatistic, useViewing } from "../view/page-state.ts";
import { keepsVisits, knowsHosting, VISITS } from "../view/visits.ts";
import { Back, Frame } from "./frame.tsx";
import { CAMPAIGNS, LISTINGS, type ListingName, tabLabel } from "./lists.ts";
import { Rows } from "./rows.tsx";
import { Tabs, useTab } from "./tabs.tsx";
import { TotalsContext, useVisitsKnown } from "./totals.ts";
import { wordOf } from "./words.ts";

const LowerPanels = later(() => import("./lower.tsx").then(({ LowerPanels }) => LowerPanels));
const PageFlow = later(() => import("./page-flow.tsx").then(({ PageFlow }) => PageFlow));
const World = later(() => import("./world.tsx").then(({ World }) => World));

export function Panels() {
  const { filters } = useViewing().view;
  const chosen = filters.find(({ field, operator }) => field === "path" && operator === "eq");
  const path = chosen?.values[0];
  const totals = useStatistic<Summary>("summary", { [VISITS]: "true" });
  return (
    <TotalsContext.Provider value={totals}>
      <div class="panels">
        {path !== undefined && keepsVisits.value && (
          <div class="page-flow-space">
            <PageFlow key={path} path={path} />
          </div>
        )}
        <Panel
          title={t("panels.pages")}
          kept="pages"
          names={keepsVisits.value ? ["pages", "entries", "exits", "time"] : ["pages", "time"]}
        />
        <Panel title={t("panels.referrers")} kept="referrers" names={["referrers", ...CAMPAIGNS]} />
        <Panel
          title={t("panels.places")}
          kept="places"
          names={["map", "countries", "languages", "locales"]}
        />
        <Panel
          title={t("panels.technology")}
          kept="technology"
          names={[
            "browsers",
            "os",
            "devices",
            ...(knowsHosting.value ? (["hosting"] as const) : []),
          ]}
        />
        <LowerPanels />
      </div>
    </TotalsContext.Provider>
  );
}

type Name = ListingName | "map";
type Campaigns = (typeof CAMPAIGNS)[number];
/** The lists of campaigns are behind one tab. */
type Tab = Exclude<Name, Campaigns> | "utm";

interface Properties {
  title: string;
  /** The key under which the selected tab is stored. */
  kept: "pages" | "referrers" | "places" | "technology";
  names: readonly Name[];
}

function Panel({ title, kept, names }: Properties) {
  const id = useId();
  const [name, setName] = useTab(kept, names);
  const [campaigns, setCampaigns] = useTab("campaigns", CAMPAIGNS);
  const [source, setSource] = useState<string>();
  const tab = tabOf(name);
  const listing = LISTINGS[name === "map" ? "countries" : name];
  const areVisits = useVisitsKnown();
  const isDrilled = name === "referrers" && source !== undefined;
  const go = (chosen: Name) => {
    if (tab === "utm") setCampaigns(name as Campaigns);
    setName(chosen);
    setSource(undefined);
  };
  return (
    <Frame
      title={title}
      head={
        <div class="panel-tabs">
          <Tabs
            label={title}
            panel={id}
            names={[...new Set(names.map(tabOf))]}
            words={(tab) =>
              tab === "map" || tab === "utm" ? t(`panels.tab.${tab}`) : tabLabel(tab)
            }
            chosen={tab}
            choose={(chosen) => go(chosen === "utm" ? campaigns : chosen)}
          />
          {names.some((name) => tabOf(name) === "utm") && (
            <Menu
              class="tab-menu"
              title={t("panels.campaigns-by")}
              label={
                <>
                  <span class="hidden">{tabLabel(tab === "utm" ? listing.name : campaigns)}</span>
                  <Icon of={ChevronDown} size={14} />
                </>
              }
              align="end"
              plain
              groups={[
                CAMPAIGNS.map((kind) => ({
                  label: tabLabel(kind),
                  isChosen: name === kind,
                  choose: () => go(kind),
                })),
              ]}
            />
          )}
        </div>
      }
      listing={isDrilled ? LISTINGS.addresses : listing}
      {...(isDrilled && { further: behind(source, areVisits) })}
      {...(isDrilled && { of: source })}
    >
      <div
        class="panel-body"
        role="tabpanel"
        id={id}
        tabIndex={-1}
        aria-labelledby={`${id}-${tab}`}
      >
        {name === "map" ? (
          <div class="map-space">
            <World />
          </div>
        ) : isDrilled ? (
          <>
            <Back label={t("panels.all-referrers")} onClick={() => setSource(undefined)}>
              {wordOf("referrer", source)}
            </Back>
            <Rows
              key="addresses"
              listing={LISTINGS.addresses}
              further={behind(source, areVisits)}
            />
          </>
        ) : (
          <Rows
            key={name}
            listing={listing}
            empty={<Empty text={t(`panels.coming.${kept}`)} />}
            {...(name === "referrers" && {
              more: (row) =>
                row.referrer === "" ? null : (
                  <button
                    type="button"
                    class="row-more"
                    title={t("panels.addresses")}
                    onClick={() => setSource(String(row.referrer))}
                  >
                    <Icon of={ListTree} size={14} />
                    <span class="hidden">
                      {t("panels.addresses-of", {
                        source: wordOf("referrer", String(row.referrer)),
                      })}
                    </span>
                  </button>
                ),
            })}
          />
        )}
      </div>
    </Frame>
  );
}

function tabOf(name: Name): Tab {
  return isOfCampaigns(name) ? "utm" : name;
}

function isOfCampaigns(name: Name): name is Campaigns {
  return CAMPAIGNS.includes(name as Campaigns);
}

/** What will be in a panel, unless it is empty because of filters. */
function Empty({ text }: { text: string }) {
  const { view } = useViewing();
  return (
    <>
      <p>{t("panels.empty")}</p>
      {view.filters.length === 0 && <p>{text}</p>}
    </>
  );
}

/** The query for the URLs of a source: of visits, where these are known. */
function behind(source: string, areVisits: boolean): Record<string, string> {
  return { [areVisits ? "visit_referrer[eq]" : "referrer[eq]"]: source };
}
