// The registered websites, to rename and delete.

import { Plus } from "lucide";
import type { TargetedSubmitEvent } from "preact";
import { useId, useState } from "preact/hooks";
import { change } from "../api/client.ts";
import type { Website } from "../api/types.ts";
import { t } from "../i18n/index.ts";
import { refresh, useAsk } from "../state/data.ts";
import { at } from "../state/paths.ts";
import { useUsage } from "../state/usage.ts";
import { Dialog } from "../ui/dialog.tsx";
import { Filled } from "../ui/filled.tsx";
import { isCalled, nameOf } from "../ui/hostnames.ts";
import { Icon } from "../ui/icon.tsx";
import { later } from "../ui/lazy.tsx";
import { Refusal, Trouble } from "../ui/trouble.tsx";
import { HostnameField, hostnameIn, hostnameRefusals } from "../websites/hostname-field.tsx";
import { Download } from "./download.tsx";
import { useSaving } from "./form-state.ts";
import { Shares } from "./shares.tsx";

const SEARCHED_FROM = 9;

const Exclusions = later(() =>
  import("../exclusions/dialog.tsx").then(({ Exclusions }) => Exclusions),
);
const Counting = later(() => import("./counting.tsx").then(({ Counting }) => Counting));

type Doing = {
  what: "rename" | "delete" | "share" | "download" | "counting" | "exclusions";
  hostname: string;
};

export function Websites() {
  const { data: websites, error } = useAsk<Website[]>("/websites");
  const { isDemo } = useUsage();
  const [doing, setDoing] = useState<Doing>();
  const [sought, setSought] = useState("");
  const [done, setDone] = useState("");
  const begin = (what: Doing) => {
    setDone("");
    setDoing(what);
  };
  const end = (what = "") => {
    setDoing(undefined);
    if (what) setDone(what);
  };
  if (!websites)
    return error ? <Trouble error={error} /> : <span class="skeleton sites-skeleton" />;
  return (
    <section class="card padded form" aria-labelledby="settings-websites">
      <div class="sites-head">
        <h2 id="settings-websites">{t("settings.websites")}</h2>
        {!isDemo && (
          <a class="button" href={at("/dashboard/add")}>
            <Icon of={Plus} size={16} />
            {t("websites.add")}
          </a>
        )}
      </div>
      {websites.length === 0 && <p class="soft">{t("sites.none")}</p>}
      {websites.length >= SEARCHED_FROM && (
        <input
          type="search"
          aria-label={t("websites.search")}
          placeholder={t("websites.search")}
          value={sought}
          onInput={(event) => setSought(event.currentTarget.value)}
        />
      )}
      <ul class="sites">
        {websites
          .filter(({ hostname }) => isCalled(hostname, sought))
          .map(({ hostname }) => (
            <Site key={hostname} hostname={hostname} isDemo={isDemo} onDo={begin} />
          ))}
      </ul>
      <p class="saved" role="status">
        {done}
      </p>
      {doing?.what === "rename" && (
        <Rename
          hostname={doing.hostname}
          names={websites.map(({ hostname }) => hostname)}
          onClose={end}
        />
      )}
      {doing?.what === "share" && (
        <Shares hostname={doing.hostname} isDemo={isDemo} onClose={end} />
      )}
      {doing?.what === "counting" && (
        <Counting hostname={doing.hostname} isDemo={isDemo} onClose={end} />
      )}
      {doing?.what === "exclusions" && (
        <Exclusions hostname={doing.hostname} onClose={() => end()} />
      )}
      {doing?.what === "download" && <Download hostname={doing.hostname} onClose={end} />}
      {doing?.what === "delete" && <Delete hostname={doing.hostname} onClose={end} />}
    </section>
  );
}

interface SiteProperties {
  hostname: string;
  isDemo: boolean;
  onDo: (doing: Doing) => void;
}

function Site({ hostname, isDemo, onDo }: SiteProperties) {
  const name = nameOf(hostname);
  const path = at(`/dashboard/websites/${encodeURIComponent(hostname)}`);
  return (
    <li>
      <a class="sites-name" href={path}>
        {name}
      </a>
      <div class="row">
        <a
          class="button"
          href={`${path}/setup`}
          aria-label={t("sites.setup-of", { hostname: name })}
        >
          {t("sites.setup")}
        </a>
        <button
          type="button"
          class="button"
          aria-label={t("counting.title", { hostname: name })}
          onClick={() => onDo({ what: "counting", hostname })}
        >
          {t("counting.short")}
        </button>
        <button
          type="button"
          class="button"
          aria-label={t("sites.left-out-of", { hostname: name })}
          onClick={() => onDo({ what: "exclusions", hostname })}
        >
          {t("sites.left-out")}
        </button>
        <button
          type="button"
          class="button"
          aria-label={t("shares.title", { hostname: name })}
          onClick={() => onDo({ what: "share", hostname })}
        >
          {t("sites.share")}
        </button>
        <button
          type="button"
          class="button"
          aria-label={t("sites.download-of", { hostname: name })}
          onClick={() => onDo({ what: "download", hostname })}
        >
          {t("sites.download")}
        </button>
        <button
          type="button"
          class="button"
          disabled={isDemo}
          aria-label={t("sites.rename-of", { hostname: name })}
          onClick={() => onDo({ what: "rename", hostname })}
        >
          {t("sites.rename")}
        </button>
        <button
          type="button"
          class="button danger"
          disabled={isDemo}
          aria-label={t("sites.delete-of", { hostname: name })}
          onClick={() => onDo({ what: "delete", hostname })}
        >
          {t("common.delete")}
        </button>
      </div>
    </li>
  );
}

interface DialogProperties {
  hostname: string;
  /** Called with a message about what was done, or with nothing. */
  onClose: (done?: string) => void;
}

function Rename({ hostname, names, onClose }: DialogProperties & { names: string[] }) {
  const name = nameOf(hostname);
  const [typed, setTyped] = useState(name);
  const wanted = hostnameIn(typed).toLowerCase();
  const saving = useSaving();
  const submit = async (event: TargetedSubmitEvent<HTMLFormElement>) => {
    event.preventDefault();
    if (await saving.save(() => change("PATCH", pathOf(hostname), { hostname: wanted }))) {
      refresh();
      onClose(t("sites.renamed", { hostname: name, wanted: nameOf(wanted) }));
    }
  };
  return (
    <Dialog title={t("sites.rename-of", { hostname: name })} onClose={() => onClose()}>
      <form class="form" onSubmit={submit}>
        <p>{t("sites.rename-text")}</p>
        <HostnameField
          isFirst
          value={typed}
          onInput={(text) => {
            setTyped(text);
            saving.forget();
          }}
        />
        <Refusal
          error={saving.error}
          meaning={hostnameRefusals(nameOf(wanted), names.map(nameOf).includes(nameOf(wanted)))}
        />
        <div class="row">
          <button type="submit" class="button main" disabled={saving.isBusy}>
            {t("sites.rename")}
          </button>
          <button type="button" class="button" onClick={() => onClose()}>
            {t("common.cancel")}
          </button>
        </div>
      </form>
    </Dialog>
  );
}

function Delete({ hostname, onClose }: DialogProperties) {
  const name = nameOf(hostname);
  const [typed, setTyped] = useState("");
  const saving = useSaving();
  const text = useId();
  const isConfirmed = [name, hostname].includes(typed.trim().toLowerCase());
  const submit = async (event: TargetedSubmitEvent<HTMLFormElement>) => {
    event.preventDefault();
    if (isConfirmed && (await saving.save(() => change("DELETE", pathOf(hostname))))) {
      refresh();
      onClose(t("sites.deleted", { hostname: name }));
    }
  };
  return (
    <Dialog title={t("sites.delete-of", { hostname: name })} onClose={() => onClose()}>
      <form class="form" onSubmit={submit}>
        <p id={text}>
          <Filled text={t("sites.delete-text")} values={{ hostname: <strong>{name}</strong> }} />
        </p>
        <label class="field">
          <span>{t("sites.delete-type")}</span>
          <input
            autofocus
            aria-describedby={text}
            autocomplete="off"
            autocapitalize="none"
            spellcheck={false}
            value={typed}
            onInput={(event) => setTyped(event.currentTarget.value)}
          />
        </label>
        <Refusal error={saving.error} />
        <div class="row">
          <button type="submit" class="button danger" disabled={!isConfirmed || saving.isBusy}>
            {t("common.delete")}
          </button>
          <button type="button" class="button" onClick={() => onClose()}>
            {t("common.cancel")}
          </button>
        </div>
      </form>
    </Dialog>
  );
}

function pathOf(hostname: string): string {
  return `/websites/${encodeURIComponent(hostname)}`;
}
