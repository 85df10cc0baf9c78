// Floods of visits, as exclusions to confirm.

import { useEffect, useId, useState } from "preact/hooks";
import { ApiError, read } from "../api/client.ts";
import type { Suggestion } from "../api/types.ts";
import { said } from "../i18n/exclusions.ts";
import { percent } from "../i18n/index.ts";
import { Refusal } from "../ui/trouble.tsx";
import type { Proposed } from "./dialog.tsx";
import { periodOf, wordsOf } from "./words.ts";

interface Properties {
  hostname: string;
  /** Identifies the present rules: when they change, other floods are left. */
  rules: string;
  /** Called with a suggestion to confirm; undefined where nothing can be changed. */
  onReview: ((proposed: Proposed) => void) | undefined;
}

export function Suggestions({ hostname, rules, onReview }: Properties) {
  const [found, setFound] = useState<Suggestion[]>();
  const [error, setError] = useState<ApiError>();
  const heading = useId();
  // To find floods takes long, so they are not looked for each time that the page is refreshed.
  useEffect(() => {
    setFound(undefined);
    const abort = new AbortController();
    const path = `/websites/${encodeURIComponent(hostname)}/suggestions`;
    read<Suggestion[]>(path, undefined, abort.signal).then(
      (answer) => {
        setFound(answer);
        setError(undefined);
      },
      (failure) => {
        if (abort.signal.aborted) return;
        if (!(failure instanceof ApiError)) throw failure;
        setError(failure);
      },
    );
    return () => abort.abort();
  }, [hostname, rules]);
  // Without visits there are none.
  if (error?.status === 404) return null;
  return (
    <section class="form" aria-labelledby={heading}>
      <h3 id={heading}>{said("suggestions")}</h3>
      {(found || !error) && (
        <p class="soft">
          {found?.length === 0 ? said("noFloods") : said(found ? "suggestionsText" : "searching")}
        </p>
      )}
      <Refusal error={error} />
      <ul class="sites">
        {(found ?? []).map((flood) => {
          const { filters, start, end } = flood;
          const [name, span] = [wordsOf(filters), periodOf(flood)];
          return (
            <li key={`${filters} ${start}`}>
              <div class="grant">
                <strong>{name}</strong>
                <span class="soft">{span}</span>
                <span>
                  {said("flood", {
                    visits: flood.visits,
                    share: percent(flood.visits_percentage),
                    views: flood.views,
                    usual: flood.usual_visits,
                  })}
                </span>
              </div>
              {onReview && (
                <button
                  type="button"
                  class="button"
                  aria-label={said("reviewOf", { name })}
                  onClick={() => onReview({ filters, start, end, span })}
                >
                  {said("review")}
                </button>
              )}
            </li>
          );
        })}
      </ul>
    </section>
  );
}
