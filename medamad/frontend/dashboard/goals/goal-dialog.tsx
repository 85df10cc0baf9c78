// Create, change or delete a goal.

import type { TargetedSubmitEvent } from "preact";
import { useId, useState } from "preact/hooks";
import { change } from "../api/client.ts";
import type { Goal } from "../api/types.ts";
import { useSuggestions } from "../filters/suggestions.ts";
import { ValueField } from "../filters/value-field.tsx";
import { t } from "../i18n/index.ts";
import type { ListRow } from "../panels/lists.ts";
import { useSaving } from "../settings/form-state.ts";
import { refresh, useAsk } from "../state/data.ts";
import { useUsage } from "../state/usage.ts";
import { Dialog } from "../ui/dialog.tsx";
import { Refusal, Trouble } from "../ui/trouble.tsx";
import { useStatistic, useViewing } from "../view/page-state.ts";
import { Actions, pathOf } from "./actions.tsx";
import { GoalPreview, Unfiltered } from "./preview.tsx";
import "../style/funnels.css" with { type: "css" };

interface Properties {
  /** The id of the goal, "" for a new one. */
  id: string;
  onClose: () => void;
}

export function GoalDialog({ id, onClose }: Properties) {
  const path = pathOf(useViewing().hostname, "goals");
  const { data, error } = useAsk<Goal[]>(path);
  const goal = data?.find((one) => one.id === id);
  return (
    <Dialog
      title={goal ? t("goals.edit", { name: goal.name }) : t("goals.new.goals")}
      onClose={onClose}
    >
      <Unfiltered>
        {!data && error && <Trouble error={error} />}
        {(goal || !id) && <GoalForm goal={goal} path={path} onClose={onClose} />}
      </Unfiltered>
    </Dialog>
  );
}

interface FormProperties {
  goal: Goal | undefined;
  path: string;
  onClose: () => void;
}

function GoalForm({ goal, path, onClose }: FormProperties) {
  const { isDemo } = useUsage();
  const [kind, setKind] = useState<"path" | "event">(goal?.event === undefined ? "path" : "event");
  const [text, setText] = useState(goal?.path ?? goal?.event ?? "");
  const [value, setValue] = useState(goal?.value ?? "");
  const [name, setName] = useState(goal?.name ?? "");
  const [revenue, setRevenue] = useState(goal?.revenue ?? "");
  const [currency, setCurrency] = useState(goal?.currency ?? "");
  const field = kind === "path" ? "path" : "prop_name";
  // What a pattern matches begins with, or contains, its first part.
  const suggestions = useSuggestions(field, kind === "path" ? text.replace(/\*.*/, "") : text);
  const properties = useSuggestions("prop_name", "")?.map((one) => one.value) ?? [];
  const values = useValues(kind === "event" && properties.includes(text) ? text : "");
  const usualName = (kind === "event" && value) || text;
  const saving = useSaving();
  const isComplete = text.trim() !== "";
  const definition = {
    path: kind === "path" ? text : null,
    event: kind === "event" ? text : null,
    value: (kind === "event" && value) || null,
    revenue: revenue || null,
    currency: revenue ? currency.toUpperCase() : null,
  };
  // An amount without its currency is not complete yet.
  const counted = currency.trim() ? definition : { ...definition, revenue: null, currency: null };
  const submit = async (event: TargetedSubmitEvent<HTMLFormElement>) => {
    event.preventDefault();
    const wanted = { ...definition, name: name.trim() || usualName };
    const save = () =>
      goal ? change("PATCH", `${path}/${goal.id}`, wanted) : change("POST", path, wanted);
    if (await saving.save(save)) {
      onClose();
      refresh();
    }
  };
  return (
    <form class="form goal-form" onSubmit={submit} onInput={saving.forget}>
      <label class="field">
        <span>{t("goals.reached")}</span>
        <select
          value={kind}
          onChange={(event) => {
            setKind(event.currentTarget.value as typeof kind);
            setText("");
          }}
        >
          <option value="path">{t("goals.by-path")}</option>
          <option value="event">{t("goals.by-event")}</option>
        </select>
      </label>
      <ValueField
        label={t(`filters.field.${field}`)}
        text={text}
        suggestions={suggestions?.filter((one) => one.value !== "")}
        title={t("filters.suggestions")}
        none={t("filters.none-suggested")}
        onText={setText}
        // In a path, an asterisk would stand for any characters.
        onChoose={(value) => setText(kind === "path" ? value.replaceAll("*", "%2A") : value)}
        onEnter={() => false}
      />
      {kind === "path" ? (
        <p class="soft">{t("goals.wildcard")}</p>
      ) : (
        <OfferingField label={t("goals.value")} value={value} offered={values} onInput={setValue} />
      )}
      <Field label={t("grants.name")} value={name} placeholder={usualName} onInput={setName} />
      <div class="filter-choices">
        <OfferingField
          label={t("goals.revenue-from")}
          value={revenue}
          offered={properties}
          onInput={setRevenue}
        />
        {revenue && (
          <Field
            label={t("goals.currency")}
            value={currency}
            placeholder="EUR"
            pattern="[A-Za-z]{3}"
            required
            onInput={setCurrency}
          />
        )}
      </div>
      <GoalPreview definition={isComplete ? counted : undefined} earns={revenue !== ""} />
      <Refusal error={saving.error} meaning={{ 409: t("goals.conflict") }} />
      <Actions
        path={goal && `${path}/${goal.id}`}
        isDemo={isDemo}
        isComplete={isComplete && !saving.isBusy}
        saving={saving}
        onClose={onClose}
      />
    </form>
  );
}

interface FieldProperties {
  label: string;
  value: string;
  placeholder?: string;
  pattern?: string;
  required?: boolean;
  onInput: (text: string) => void;
}

function Field({ label, onInput, ...further }: FieldProperties) {
  return (
    <label class="field">
      <span>{label}</span>
      <input
        autocomplete="off"
        spellcheck={false}
        {...further}
        onInput={(event) => onInput(event.currentTarget.value)}
      />
    </label>
  );
}

interface OfferingProperties extends Pick<FieldProperties, "label" | "value" | "onInput"> {
  offered: readonly string[];
}

/** A field that suggests what has been seen. */
function OfferingField({ label, value, offered, onInput }: OfferingProperties) {
  const id = useId();
  return (
    <label class="field">
      <span>{label}</span>
      <input
        list={id}
        autocomplete="off"
        spellcheck={false}
        value={value}
        onInput={(event) => onInput(event.currentTarget.value)}
      />
      <datalist id={id}>
        {offered.map((one) => (
          <option key={one} value={one} />
        ))}
      </datalist>
    </label>
  );
}

/** The most frequent values of a property; none for "". */
function useValues(property: string): string[] {
  const { data } = useStatistic<ListRow[]>(property ? "properties" : null, {
    "prop_name[eq]": property,
    limit: "50",
  });
  return property && data ? data.map((row) => String(row.value)) : [];
}
