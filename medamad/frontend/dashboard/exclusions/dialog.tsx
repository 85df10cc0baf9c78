// What is left out of all figures of a website: the rules, what each leaves out, a new one, and
// suggestions of others.

import type { TargetedSubmitEvent } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { address, change } from "../api/client.ts";
import type { Exclusion } from "../api/types.ts";
import { said } from "../i18n/exclusions.ts";
import { t } from "../i18n/index.ts";
import { useSaving } from "../settings/form-state.ts";
import { refresh, useAsk } from "../state/data.ts";
import { useUsage } from "../state/usage.ts";
import { Dialog, hasKeyboard } from "../ui/dialog.tsx";
import { nameOf } from "../ui/hostnames.ts";
import { Refusal, Trouble } from "../ui/trouble.tsx";
import { Suggestions } from "./suggestions.tsx";
import { periodOf, wordsOf } from "./words.ts";
import "../style/settings.css" with { type: "css" };

const MAX_NAME = 100;

/** Filters as in an address, the period of the page, and that period in words. */
export interface Proposed {
  filters: string;
  start: string | null;
  end: string | null;
  span: string;
}

interface Properties {
  hostname: string;
  proposed?: Proposed;
  onClose: () => void;
}

export function Exclusions({ hostname, proposed, onClose }: Properties) {
  const path = `/websites/${encodeURIComponent(hostname)}/exclusions`;
  const { data, error } = useAsk<Exclusion[]>(path);
  const { isDemo } = useUsage();
  const [done, setDone] = useState("");
  const [reviewed, setReviewed] = useState<Proposed>();
  const adding = reviewed ?? (isDemo ? undefined : proposed);
  const removing = useSaving();
  const remove = async ({ id, name }: Exclusion) => {
    if (await removing.save(() => change("DELETE", `${path}/${id}`))) {
      setDone(said("removed", { name }));
      refresh();
    }
  };
  return (
    <Dialog title={said("title", { hostname: nameOf(hostname) })} onClose={onClose}>
      <div class="form">
        <p>{said("text")}</p>
        {adding && (
          <Add
            key={reviewed && `${reviewed.filters} ${reviewed.start}`}
            path={path}
            proposed={adding}
            isReviewed={adding === reviewed}
            onAdd={(name) => {
              setDone(said("added", { name }));
              setReviewed(undefined);
            }}
          />
        )}
        {!data && error && <Trouble error={error} />}
        {data?.length === 0 && <p class="soft">{said("none")}</p>}
        <ul class="sites">
          {(data ?? []).map((each) => (
            <li key={each.id}>
              <div class="grant">
                <strong>{each.name}</strong>
                <span class="soft">
                  {[wordsOf(each.filters), periodOf(each)].filter((words) => words).join(" · ")}
                </span>
                <span>
                  {each.visits === undefined
                    ? said("views", { views: each.views })
                    : said("visits", { visits: each.visits, views: each.views })}
                </span>
              </div>
              <button
                type="button"
                class="button"
                disabled={isDemo || removing.isBusy}
                aria-label={said("removeOf", { name: each.name })}
                onClick={() => remove(each)}
              >
                {said("remove")}
              </button>
            </li>
          ))}
        </ul>
        <Refusal error={removing.error} />
        <p class="saved" role="status">
          {done}
        </p>
        {data && data.length > 0 && (
          <div class="row">
            <a
              class="button"
              href={address(`/websites/${encodeURIComponent(hostname)}/settings/export/exclusions`)}
              download={`${hostname}-exclusions.json`}
            >
              {t("sites.download")}
            </a>
          </div>
        )}
        {data && (
          <Suggestions
            hostname={hostname}
            rules={data.map(({ id }) => id).join()}
            onReview={isDemo ? undefined : setReviewed}
          />
        )}
      </div>
    </Dialog>
  );
}

interface AddProperties {
  path: string;
  proposed: Proposed;
  /** Whether it was opened in the dialog, and so gets the focus. */
  isReviewed: boolean;
  onAdd: (name: string) => void;
}

function Add({ path, proposed, isReviewed, onAdd }: AddProperties) {
  const { filters, start, end, span } = proposed;
  const [name, setName] = useState(wordsOf(filters).slice(0, MAX_NAME));
  const [isBounded, setBounded] = useState(true);
  const saving = useSaving();
  const form = useRef<HTMLFormElement>(null);
  useEffect(() => {
    if (!isReviewed) return;
    form.current?.scrollIntoView({ block: "nearest" });
    if (hasKeyboard()) form.current?.querySelector("input")?.focus();
  }, []);
  const submit = async (event: TargetedSubmitEvent<HTMLFormElement>) => {
    event.preventDefault();
    const wanted = { name, filters, ...(isBounded && { start, end }) };
    if (await saving.save(() => change("POST", path, wanted))) {
      onAdd(name);
      refresh();
    }
  };
  return (
    <form class="form" ref={form} onSubmit={submit}>
      <label class="field">
        <span>{t("grants.name")}</span>
        <input
          required
          autocomplete="off"
          maxLength={MAX_NAME}
          pattern=".*\S.*"
          value={name}
          onInput={(event) => {
            setName(event.currentTarget.value);
            saving.forget();
          }}
        />
      </label>
      <p class="soft">{wordsOf(filters)}</p>
      <div class="choices">
        <label>
          <input
            type="checkbox"
            checked={isBounded}
            onChange={(event) => setBounded(event.currentTarget.checked)}
          />
          <span>{said("inPeriod", { span })}</span>
        </label>
      </div>
      <Refusal error={saving.error} />
      <div class="row">
        <button type="submit" class="button main" disabled={saving.isBusy}>
          {said("leaveOut")}
        </button>
      </div>
    </form>
  );
}
