// Create, change or delete a funnel.

import { ArrowDown, ArrowUp, X } from "lucide";
import type { TargetedSubmitEvent } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { change } from "../api/client.ts";
import type { Funnel, FunnelFigures, Goal } from "../api/types.ts";
import { figure, percent, t } from "../i18n/index.ts";
import { useSaving } from "../settings/form-state.ts";
import { refresh, useAsk } from "../state/data.ts";
import { useUsage } from "../state/usage.ts";
import { Dialog, hasKeyboard } from "../ui/dialog.tsx";
import { Icon } from "../ui/icon.tsx";
import { Refusal, Trouble } from "../ui/trouble.tsx";
import { useViewing } from "../view/page-state.ts";
import { Actions, pathOf } from "./actions.tsx";
import { PreviewDays, Unfiltered, usePreview } from "./preview.tsx";
import "../style/funnels.css" with { type: "css" };

const MOST_GOALS = 8;

interface Properties {
  /** The id of the funnel, "" for a new one. */
  id: string;
  onClose: () => void;
  /** Called instead once the funnel is deleted. */
  onDelete?: () => void;
}

export function FunnelDialog({ id, onClose, onDelete }: Properties) {
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
      {isReady && (
        <Unfiltered>
          <FunnelForm
            funnel={funnel}
            goals={goals.data ?? []}
            onClose={onClose}
            onDelete={onDelete}
          />
        </Unfiltered>
      )}
    </Dialog>
  );
}

interface FormProperties {
  funnel: Funnel | undefined;
  goals: readonly Goal[];
  onClose: () => void;
  onDelete: (() => void) | undefined;
}

function FunnelForm({ funnel, goals, onClose, onDelete }: FormProperties) {
  const { hostname } = useViewing();
  const { isDemo } = useUsage();
  const path = pathOf(hostname, "funnels");
  const [name, setName] = useState(funnel?.name ?? "");
  const [chosen, setChosen] = useState<readonly string[]>(funnel?.goals ?? []);
  const saving = useSaving();
  const adding = useRef<HTMLSelectElement>(null);
  const pressed = useRef<HTMLButtonElement | undefined>(undefined);
  // A button that is moved or removed loses the focus.
  useLayoutEffect(() => {
    const button = pressed.current;
    pressed.current = undefined;
    if (button) (button.isConnected ? button : adding.current)?.focus();
  }, [chosen]);
  const order = (goals: readonly string[], button: HTMLButtonElement) => {
    pressed.current = button;
    setChosen(goals);
  };
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
      {chosen.length > 0 && <Steps goals={goals} chosen={chosen} choose={order} />}
      {others.length > 0 && chosen.length < MOST_GOALS && (
        <label class="field">
          <span>{t("goals.add-step")}</span>
          <select
            ref={adding}
            value=""
            onChange={(event) => setChosen([...chosen, event.currentTarget.value])}
          >
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
        onDelete={onDelete}
      />
    </form>
  );
}

interface StepsProperties {
  goals: readonly Goal[];
  /** The ids of the goals of the funnel, in order. */
  chosen: readonly string[];
  choose: (chosen: readonly string[], pressed: HTMLButtonElement) => void;
}

/** The steps, which can be moved and removed, with the visits that reached each. */
function Steps({ goals, chosen, choose }: StepsProperties) {
  const canCount = chosen.length > 1;
  const { data, isStale } = usePreview<Pick<FunnelFigures, "steps">>(
    "funnels",
    canCount ? { goals: chosen } : undefined,
  );
  return (
    <div>
      {canCount && <PreviewDays />}
      <ol class="funnel-goals">
        {chosen.map((id, place) => {
          const goal = goals.find((one) => one.id === id)?.name ?? id;
          const step = data?.steps.find((one) => one.goal === id);
          const others = chosen.toSpliced(place, 1);
          const button = (icon: typeof X, label: string, order?: readonly string[]) => (
            <button
              type="button"
              class="quiet"
              title={label}
              aria-disabled={!order}
              onClick={({ currentTarget }) => {
                if (!order) return;
                choose(order, currentTarget);
              }}
            >
              <Icon of={icon} size={14} />
              <span class="hidden">{label}</span>
            </button>
          );
          return (
            <li key={id}>
              <div>
                <bdi>{goal}</bdi>
                {canCount && (
                  <span class={isStale ? "soft stale" : "soft"}>
                    {step
                      ? t("goals.figure-share", {
                          n: figure(step.visits),
                          share: percent(step.visits_percentage),
                        })
                      : "–"}
                  </span>
                )}
                {button(
                  ArrowUp,
                  t("goals.move-up", { name: goal }),
                  place > 0 ? others.toSpliced(place - 1, 0, id) : undefined,
                )}
                {button(
                  ArrowDown,
                  t("goals.move-down", { name: goal }),
                  place < others.length ? others.toSpliced(place + 1, 0, id) : undefined,
                )}
                {button(X, t("filters.remove-value", { value: goal }), others)}
              </div>
            </li>
          );
        })}
      </ol>
    </div>
  );
}
