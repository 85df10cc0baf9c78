// Create or edit a filter.

import { X } from "lucide";
import type { ComponentChildren } from "preact";
import { useContext, useId, useMemo, useState } from "preact/hooks";
import { language, t } from "../i18n/index.ts";
import { directionOf, valueNamed, wordOf } from "../panels/words.ts";
import { Dialog, hasKeyboard } from "../ui/dialog.tsx";
import { Icon } from "../ui/icon.tsx";
import {
  BEHAVIOUR,
  type Behaviour,
  BOUNDS,
  type Field,
  type Filter,
  isDuration,
  isOfBehaviour,
  isTruth,
  type Operator,
  TEXT_OPERATORS,
  takesMany,
} from "../view/filters.ts";
import { type Viewing, ViewingContext } from "../view/page-state.ts";
import { useSuggestions } from "./suggestions.ts";
import { ValueField } from "./value-field.tsx";
import { comparesWhole, mayBeEmpty } from "./words.ts";

const GROUPS = {
  content: ["path", "entry_page", "exit_page"],
  visits: ["visit_referrer", "visit_utm_source", "visit_utm_medium", "visit_utm_campaign"],
  sources: ["referrer", "utm_source", "utm_medium", "utm_campaign", "utm_term", "utm_content"],
  places: ["country", "language"],
  technology: ["browser", "os", "device", "hosting"],
  properties: ["prop_name", "prop_value"],
  behaviour: BEHAVIOUR,
} as const satisfies Record<string, readonly Field[]>;

interface Properties {
  filter: Filter | undefined;
  /** The other active filters, which apply to suggestions. */
  others: Filter[];
  apply: (filter: Filter) => void;
  onClose: () => void;
}

export function Editor({ filter, others, apply, onClose }: Properties) {
  const viewing = useContext(ViewingContext) as Viewing;
  const without = useMemo(
    () => ({ ...viewing, view: { ...viewing.view, filters: others } }),
    [viewing],
  );
  return (
    <Dialog title={t(filter ? "filters.edit" : "filters.add")} onClose={onClose}>
      <ViewingContext.Provider value={without}>
        <EditorForm filter={filter} apply={apply} />
      </ViewingContext.Provider>
    </Dialog>
  );
}

/** What is typed for a value: its name if whole values are compared. */
function textOf(field: Field, operator: Operator, value: string): string {
  return value && comparesWhole(operator) ? wordOf(field, value) : value;
}

interface FormProperties extends Pick<Properties, "filter" | "apply"> {
  /** The field that is filtered by, and its choice. */
  field: Field;
  choice: ComponentChildren;
}

function EditorForm({ filter, apply }: Pick<Properties, "filter" | "apply">) {
  const [field, setField] = useState<Field>(filter?.field ?? "path");
  const choice = (
    <label class="field">
      <span>{t("filters.field")}</span>
      <select value={field} onChange={(event) => setField(event.currentTarget.value as Field)}>
        {Object.entries(GROUPS).map(([group, fields]) => (
          <optgroup key={group} label={t(`filters.group.${group as keyof typeof GROUPS}`)}>
            {fields.map((name) => (
              <option key={name} value={name}>
                {t(`filters.field.${name}`)}
              </option>
            ))}
          </optgroup>
        ))}
      </select>
    </label>
  );
  const known = filter?.field === field ? filter : undefined;
  return isOfBehaviour(field) || isTruth(field) ? (
    <BehaviourForm key={field} filter={known} field={field} choice={choice} apply={apply} />
  ) : (
    <TextForm filter={filter} field={field} choice={choice} apply={apply} />
  );
}

interface OperatorChoiceProperties {
  operators: readonly Operator[];
  value: Operator;
  choose: (operator: Operator) => void;
}

const OperatorChoice = ({ operators, value, choose }: OperatorChoiceProperties) => (
  <label class="field">
    <span>{t("filters.operator")}</span>
    <select value={value} onChange={(event) => choose(event.currentTarget.value as Operator)}>
      {operators.map((name) => (
        <option key={name} value={name}>
          {t(`filters.operator.${name}`)}
        </option>
      ))}
    </select>
  </label>
);

type Simple = Behaviour | "hosting";

/** Compares what is a number, or true or false. */
function BehaviourForm({ filter, field, choice, apply }: FormProperties & { field: Simple }) {
  const isChoice = isTruth(field);
  const inUnit = isDuration(field) ? 1000 : 1;
  const known = filter?.values[0];
  const [operator, setOperator] = useState<Operator>(filter?.operator ?? BOUNDS[0]);
  const [truth, setTruth] = useState(known ?? "true");
  const [typed, setTyped] = useState(known && !isChoice ? String(Number(known) / inUnit) : "");
  const value = isChoice ? truth : typed && String(Math.round(Number(typed) * inUnit));
  const submit = (event: SubmitEvent) => {
    event.preventDefault();
    if (!value) return;
    (event.currentTarget as Element).closest("dialog")?.close();
    apply({ field, operator: isChoice ? "eq" : operator, values: [value] });
  };
  return (
    <form class="form filter-form" onSubmit={submit}>
      <div class="filter-choices">
        {choice}
        {isChoice ? (
          <label class="field">
            <span>{t("filters.value")}</span>
            <select value={truth} onChange={(event) => setTruth(event.currentTarget.value)}>
              {["true", "false"].map((name) => (
                <option key={name} value={name}>
                  {wordOf(field, name)}
                </option>
              ))}
            </select>
          </label>
        ) : (
          <OperatorChoice operators={BOUNDS} value={operator} choose={setOperator} />
        )}
      </div>
      {!isChoice && (
        <label class="field">
          <span>{t(inUnit === 1 ? "filters.number" : "filters.seconds")}</span>
          <input
            type="number"
            required
            min="0"
            max="999999999"
            step={inUnit === 1 ? "1" : "any"}
            autofocus={hasKeyboard()}
            value={typed}
            onInput={(event) => setTyped(event.currentTarget.value)}
          />
        </label>
      )}
      <p class="filter-notes soft">
        {t(
          field === "visit_bounce"
            ? "measure.visit_bounce_percentage-title"
            : `filters.about.${field}`,
        )}
      </p>
      <button type="submit" class="button main" disabled={!value}>
        {t("filters.apply")}
      </button>
    </form>
  );
}

function TextForm({ filter: edited, field, choice, apply }: FormProperties) {
  const filter =
    edited && !isOfBehaviour(edited.field) && !isTruth(edited.field) ? edited : undefined;
  const [operator, setOperator] = useState<Operator>(filter?.operator ?? "eq");
  const isList = takesMany(operator);
  const [values, setValues] = useState(isList ? (filter?.values ?? []) : []);
  const [text, setText] = useState(
    !filter || isList ? "" : textOf(field, operator, filter.values[0] ?? ""),
  );
  const suggestions = useSuggestions(field, text);
  const notes = useId();

  const offered = suggestions?.filter(({ value }) =>
    isList
      ? !values.includes(value) && !value.includes(",")
      : value !== "" || (comparesWhole(operator) && mayBeEmpty(field)),
  );
  const named = (typed: string) =>
    comparesWhole(operator)
      ? valueNamed(field, typed, suggestions?.map(({ value }) => value) ?? [])
      : typed;
  const all = isList && text.trim() ? [...values, named(text)] : values;
  const isComplete = isList
    ? all.length > 0
    : text.trim() !== "" || (comparesWhole(operator) && mayBeEmpty(field));

  // Values are of one field.
  const [valuesOf, setValuesOf] = useState(field);
  if (valuesOf !== field) {
    setValuesOf(field);
    setValues([]);
    setText("");
  }
  const chooseOperator = (chosen: Operator) => {
    if (takesMany(chosen) && !isList) {
      setValues(text && !text.includes(",") ? [named(text)] : []);
      setText("");
    } else if (isList && !takesMany(chosen)) {
      setText(textOf(field, chosen, values[0] ?? ""));
      setValues([]);
    }
    setOperator(chosen);
  };
  const type = (typed: string) => {
    if (!isList || !typed.includes(",")) return setText(typed);
    const parts = typed.split(",");
    const rest = parts.pop() ?? "";
    take(parts.filter((part) => part.trim()).map(named));
    return setText(rest);
  };
  const take = (taken: readonly string[]) => {
    setValues([...new Set([...values, ...taken])]);
    setText("");
  };
  const choose = (value: string) => {
    if (isList) take([value]);
    else setText(textOf(field, operator, value));
  };
  const enter = () => {
    if (!isList || !text.trim()) return false;
    take([named(text)]);
    return true;
  };
  const submit = (event: SubmitEvent) => {
    event.preventDefault();
    if (!isComplete) return;
    (event.currentTarget as Element).closest("dialog")?.close();
    apply({ field, operator, values: isList ? [...new Set(all)] : [named(text)] });
  };
  return (
    <form class="form filter-form" onSubmit={submit}>
      <div class="filter-choices">
        {choice}
        <OperatorChoice operators={TEXT_OPERATORS} value={operator} choose={chooseOperator} />
      </div>
      {values.length > 0 && (
        <ul class="filter-values">
          {values.map((value) => (
            <li key={value}>
              <bdi dir={directionOf(field)}>{wordOf(field, value)}</bdi>
              <button
                type="button"
                title={t("filters.remove-value", { value: wordOf(field, value) })}
                onClick={(event) => {
                  event.currentTarget.form?.querySelector("input")?.focus();
                  setValues(values.filter((other) => other !== value));
                }}
              >
                <Icon of={X} size={14} />
                <span class="hidden">
                  {t("filters.remove-value", { value: wordOf(field, value) })}
                </span>
              </button>
            </li>
          ))}
        </ul>
      )}
      <ValueField
        label={t(isList ? "filters.values" : "filters.value")}
        text={text}
        suggestions={offered}
        title={t("filters.suggestions")}
        none={t("filters.none-suggested")}
        describedBy={notes}
        onText={type}
        onChoose={choose}
        onEnter={enter}
      />
      <div id={notes} class="filter-notes soft">
        {isList && <p>{t("filters.comma")}</p>}
        {!isList && text === "" && isComplete && <p>{t("filters.empty")}</p>}
        {comparesEnglish(field, operator) && <p>{t("filters.english")}</p>}
      </div>
      <button type="submit" class="button main" disabled={!isComplete}>
        {t("filters.apply")}
      </button>
    </form>
  );
}

/** Whether part of a name is compared that the user knows in another language. */
function comparesEnglish(field: Field, operator: Operator): boolean {
  const isNamed = field === "country" || field === "language" || field === "device";
  return isNamed && !comparesWhole(operator) && language.value !== "en";
}
