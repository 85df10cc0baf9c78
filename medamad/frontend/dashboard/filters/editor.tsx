// Making a filter, or another one of one that is there.

import { useEffect, useId, useState } from "preact/hooks";
import { t } from "../i18n/index.ts";
import { Dialog } from "../ui/dialog.tsx";
import { useStatistic } from "../view/asking.ts";
import {
  FIELDS,
  type Field,
  type Filter,
  OPERATORS,
  type Operator,
  takesMany,
} from "../view/filters.ts";

/** Where the values of a field are counted, and what they are called there. */
const SOURCES: Record<Field, [path: string, value: string]> = {
  path: ["pages", "path"],
  referrer: ["referrers", "referrer"],
  utm_source: ["sources", "source"],
  utm_medium: ["mediums", "medium"],
  utm_campaign: ["campaigns", "campaign"],
  utm_term: ["terms", "term"],
  utm_content: ["contents", "content"],
  country: ["countries", "country"],
  language: ["languages", "language"],
  browser: ["browsers", "browser"],
  os: ["os", "os"],
  device: ["devices", "device"],
  prop_name: ["properties", "name"],
  prop_value: ["properties", "value"],
};

const SUGGESTIONS = "30";
const TYPING_MS = 250;

interface Properties {
  filter: Filter | undefined;
  onApply: (filter: Filter) => void;
  onClose: () => void;
}

export function Editor({ filter, onApply, onClose }: Properties) {
  const [field, setField] = useState<Field>(filter?.field ?? "path");
  const [operator, setOperator] = useState<Operator>(filter?.operator ?? "contains");
  const [text, setText] = useState(filter?.values.join(",") ?? "");
  const list = useId();
  const last = takesMany(operator) ? text.slice(text.lastIndexOf(",") + 1).trim() : text;
  const kept = text.slice(0, text.length - last.length);
  const suggestions = useSuggestions(field, last);
  const apply = (event: Event) => {
    event.preventDefault();
    const values = takesMany(operator) ? text.split(",").map((value) => value.trim()) : [text];
    onApply({ field, operator, values });
    onClose();
  };
  return (
    <Dialog title={t(filter ? "filters.edit" : "filters.add")} onClose={onClose}>
      <form class="form" onSubmit={apply}>
        <label class="field">
          <span>{t("filters.field")}</span>
          <select value={field} onChange={(event) => setField(event.currentTarget.value as Field)}>
            {FIELDS.map((field) => (
              <option key={field} value={field}>
                {t(`field.${field}`)}
              </option>
            ))}
          </select>
        </label>
        <label class="field">
          <span>{t("filters.operator")}</span>
          <select
            value={operator}
            onChange={(event) => setOperator(event.currentTarget.value as Operator)}
          >
            {OPERATORS.map((operator) => (
              <option key={operator} value={operator}>
                {t(`operator.${operator}`)}
              </option>
            ))}
          </select>
        </label>
        <label class="field">
          <span>{t(takesMany(operator) ? "filters.values" : "filters.value")}</span>
          <input
            list={list}
            value={text}
            autocomplete="off"
            spellcheck={false}
            onInput={(event) => setText(event.currentTarget.value)}
          />
        </label>
        <datalist id={list}>
          {suggestions.map((value) => (
            <option key={value} value={kept + value} />
          ))}
        </datalist>
        <button type="submit" class="button main">
          {t("filters.apply")}
        </button>
      </form>
    </Dialog>
  );
}

/** Values of a field that hold what was typed, the most frequent first. */
function useSuggestions(field: Field, typed: string): string[] {
  const [sought, setSought] = useState(typed);
  useEffect(() => {
    const waiting = setTimeout(() => setSought(typed), TYPING_MS);
    return () => clearTimeout(waiting);
  }, [typed]);
  const [path, value] = SOURCES[field];
  const { data, isStale } = useStatistic<Record<string, string | number>[]>(path, {
    limit: SUGGESTIONS,
    ...(path !== "properties" && { summary: "true" }),
    ...(field === "prop_value" && { "prop_name[contains]": "" }),
    ...(sought && { [`${field}[contains]`]: sought }),
  });
  if (isStale || !data) return [];
  return [...new Set(data.map((row) => String(row[value] ?? "")))].filter(Boolean);
}
