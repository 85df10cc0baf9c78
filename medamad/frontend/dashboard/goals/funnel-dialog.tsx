// Create, change or delete a funnel.

import { X } from "lucide";
import type { TargetedSubmitEvent } from "preact";
import { useState } from "preact/hooks";
import { change } from "../api/client.ts";
import type { Funnel, Goal } from "../api/types.ts";
import { t } from "../i18n/index.ts";
import { useSaving } from "../settings/form-state.ts";
import { refresh, useAsk } from "../state/data.ts";
import { useUsage } from "../state/usage.ts";
import { Dialog, hasKeyboard } from "../ui/dialog.tsx";
import { Icon } from "../ui/icon.tsx";
import { Refusal, Trouble } from "../ui/trouble.tsx";
import { useViewing } from "../view/page-state.ts";
import { Actions, pathOf } from "./actions.tsx";
import "../style/funnels.css" with { type: "css" };

const MOST_GOALS = 8;

interface Properties {
  /** The id of the funnel, "" for a new one. */
  id: string;
  onClose: () => void;
}

export function FunnelDialog({ id, onClose }: Properties) {
  const { hostname } = useViewing();
  const goals = useAsk<Goal[]>(pathOf(hostname, "goals"));
  const funnels = useAsk<Funnel[]>(pathOf(hostname, "funnels"));
  const funnel = funnels.data?.find((one) => one.id === id);
  const error = goals.error ?? funnels.error;
  const isReady = goals.data && funnels.data && (funnel || !id);
  return (
    <Dialog
      title={funnel ? t("goals.edit", { name: funnel.name }) : t("goals.new.funnels")}
      onClose={onClose}
    >
      {!isReady && error && <Trouble error={error} />}
      {isReady && <FunnelForm funnel={funnel} goals={goals.data ?? []} onClose={onClose} />}
    </Dialog>
  );
}

interface FormProperties {
  funnel: Funnel | undefined;
  goals: readonly Goal[];
  onClose: () => void;
}

function FunnelForm({ funnel, goals, onClose }: FormProperties) {
  const { hostname } = useViewing();
  const { isDemo } = useUsage();
  const path = pathOf(hostname, "funnels");
  const [name, setName] = useState(funnel?.name ?? "");
  const [chosen, setChosen] = useState<readonly string[]>(funnel?.goals ?? []);
  const saving = useSaving();
  const others = goals.filter(({ id }) => !chosen.includes(id));
  const submit = async (event: TargetedSubmitEvent<HTMLFormElement>) => {
    event.preventDefault();
    const wanted = { name, goals: chosen };
    const save = () =>
      funnel ? change("PATCH", `${path}/${funnel.id}`, wanted) : change("POST", path, wanted);
    if (await saving.save(save)) {
      onClose();
      refresh();
    }
  };
  return (
    <form class="form" onSubmit={submit} onInput={saving.forget}>
      <label class="field">
        <span>{t("grants.name")}</span>
        <input
          required
          autofocus={hasKeyboard()}
          autocomplete="off"
          value={name}
          onInput={(event) => setName(event.currentTarget.value)}
        />
      </label>
      {goals.length < 2 && <p class="soft">{t("goals.few")}</p>}
      {chosen.length > 0 && (
        <ol class="funnel-goals">
          {chosen.map((id) => {
            const goal = goals.find((one) => one.id === id)?.name ?? id;
            const label = t("filters.remove-value", { value: goal });
            return (
              <li key={id}>
                <bdi>{goal}</bdi>
                <button
                  type="button"
                  class="quiet"
                  title={label}
                  onClick={(event) => {
                    event.currentTarget.form?.querySelector("select")?.focus();
                    setChosen(chosen.filter((one) => one !== id));
                  }}
                >
                  <Icon of={X} size={14} />
                  <span class="hidden">{label}</span>
                </button>
              </li>
            );
          })}
        </ol>
      )}
      {others.length > 0 && chosen.length < MOST_GOALS && (
        <label class="field">
          <span>{t("goals.add-step")}</span>
          <select value="" onChange={(event) => setChosen([...chosen, event.currentTarget.value])}>
            <option value="" disabled>
              {t("goals.choose")}
            </option>
            {others.map(({ id, name }) => (
              <option key={id} value={id}>
                {name}
              </option>
            ))}
          </select>
        </label>
      )}
      <Refusal error={saving.error} />
      <Actions
        path={funnel && `${path}/${funnel.id}`}
        isDemo={isDemo}
        isComplete={name.trim() !== "" && chosen.length > 1 && !saving.isBusy}
        saving={saving}
        onClose={onClose}
      />
    </form>
  );
}
