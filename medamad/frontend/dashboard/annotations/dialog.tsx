// The annotations of the period: read, add, change or delete them.

import { TZDateMini } from "@date-fns/tz";
import { Plus } from "lucide";
import type { TargetedSubmitEvent } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { change } from "../api/client.ts";
import type { Annotation } from "../api/types.ts";
import { Actions } from "../goals/actions.tsx";
import { t } from "../i18n/index.ts";
import { useSaving } from "../settings/form-state.ts";
import { refresh } from "../state/data.ts";
import { shareId } from "../state/share.ts";
import { useUsage } from "../state/usage.ts";
import { DayField } from "../ui/day-field.tsx";
import { Dialog, hasKeyboard } from "../ui/dialog.tsx";
import { Edit } from "../ui/edit.tsx";
import { Icon } from "../ui/icon.tsx";
import { Refusal } from "../ui/trouble.tsx";
import { annotationsPath, isOfDay } from "../view/annotations.ts";
import { Noted } from "../view/noted.tsx";
import { useViewing } from "../view/page-state.ts";
import { clockOf, dayOf, spanOfRange } from "../view/periods.ts";
import { annotationLabel } from "../view/spans.ts";
import "../style/annotations.css" with { type: "css" };

interface Properties {
  annotations: readonly Annotation[];
  /** The days of the period. */
  days: string;
  onClose: () => void;
}

export function AnnotationsDialog({ annotations, days, onClose }: Properties) {
  /** The one that is changed; "new" for another one. */
  const [edited, setEdited] = useState<Annotation | "new">();
  const title =
    edited === undefined
      ? t("annotations.title")
      : edited === "new"
        ? t("annotations.new")
        : t("goals.edit", { name: edited.text });
  return (
    <Dialog title={title} onClose={onClose}>
      {edited === undefined ? (
        <List annotations={annotations} days={days} edit={setEdited} />
      ) : (
        <Form of={edited === "new" ? undefined : edited} onClose={() => setEdited(undefined)} />
      )}
    </Dialog>
  );
}

interface ListProperties extends Omit<Properties, "onClose"> {
  edit: (annotation: Annotation | "new") => void;
}

function List({ annotations, days, edit }: ListProperties) {
  const { zone } = useViewing();
  const add = useRef<HTMLButtonElement>(null);
  useEffect(() => {
    // What had the focus is gone with the form.
    if (document.activeElement === document.body) add.current?.focus();
  }, []);
  return (
    <div class="form">
      <p class="soft">{days}</p>
      {annotations.length === 0 && (
        <div>
          <p>{t("annotations.none")}</p>
          <p class="soft">{t("annotations.none-text")}</p>
        </div>
      )}
      <ul class="annotations">
        {annotations.map((one) => (
          <li key={one.id}>
            <p>
              <Noted of={one} when={annotationLabel(one, zone)} />
            </p>
            <Edit name={one.text} edit={() => edit(one)} />
          </li>
        ))}
      </ul>
      {!shareId && (
        <button ref={add} type="button" class="button" onClick={() => edit("new")}>
          <Icon of={Plus} size={16} /> {t("annotations.new")}
        </button>
      )}
    </div>
  );
}

/** A day without an end: what is planned can be annotated, too. */
const LAST_DAY = "9999-12-31";

function Form({ of, onClose }: { of: Annotation | undefined; onClose: () => void }) {
  const { hostname, zone } = useViewing();
  const { isDemo } = useUsage();
  const [before] = useState(() => clockIn(of, zone));
  const [text, setText] = useState(of?.text ?? "");
  const [day, setDay] = useState(before.day);
  const [time, setTime] = useState(before.time);
  const [link, setLink] = useState(of?.link ?? "");
  const first = useRef<HTMLInputElement>(null);
  const saving = useSaving();
  const path = annotationsPath(hostname);
  useEffect(() => {
    if (hasKeyboard()) first.current?.focus();
  }, []);
  const submit = async (event: TargetedSubmitEvent<HTMLFormElement>) => {
    event.preventDefault();
    // Seconds are not shown: they stay unless the time is changed.
    const isMoved = !of || day !== before.day || time !== before.time;
    const wanted = {
      text,
      link: link || null,
      ...(isMoved && { time: instantOf(day, time, zone) }),
    };
    const save = () =>
      of ? change("PATCH", `${path}/${of.id}`, wanted) : change("POST", path, wanted);
    if (await saving.save(save)) {
      onClose();
      refresh();
    }
  };
  const isFull = saving.error?.message.startsWith("annotations: ");
  return (
    <form class="form" onSubmit={submit} onInput={saving.forget}>
      <label class="field">
        <span>{t("annotations.text")}</span>
        <input
          ref={first}
          autocomplete="off"
          maxLength={200}
          required
          value={text}
          onInput={(event) => setText(event.currentTarget.value)}
        />
      </label>
      <div class="annotation-when">
        <DayField label={t("annotations.day")} value={day} last={LAST_DAY} onInput={setDay} />
        <label class="field">
          <span>{t("annotations.time")}</span>
          <input type="time" value={time} onInput={(event) => setTime(event.currentTarget.value)} />
        </label>
      </div>
      <p class="soft">{t("annotations.without-time", { zone })}</p>
      <label class="field">
        <span>{t("annotations.link")}</span>
        <input
          type="url"
          autocomplete="off"
          placeholder="https://"
          pattern="[Hh][Tt][Tt][Pp][Ss]?://.+"
          maxLength={2048}
          value={link}
          onInput={(event) => setLink(event.currentTarget.value)}
        />
      </label>
      <Refusal error={saving.error} {...(isFull && { meaning: { 400: t("annotations.full") } })} />
      <Actions
        path={of && `${path}/${of.id}`}
        isDemo={isDemo}
        isComplete={text.trim() !== "" && day !== "" && !saving.isBusy}
        saving={saving}
        onClose={onClose}
      />
    </form>
  );
}

/** The day and the time of an annotation by the zone's clock; today for a new one. */
function clockIn(of: Annotation | undefined, zone: string): { day: string; time: string } {
  if (!of) return { day: dayOf(new TZDateMini(new Date(), zone)), time: "" };
  if (isOfDay(of)) return { day: of.time, time: "" };
  const [day = "", time = ""] = clockOf(new TZDateMini(of.time, zone)).split("T");
  return { day, time };
}

/** A day, or the instant of a time of it. */
function instantOf(day: string, time: string, zone: string): string {
  if (!time) return day;
  const clock = `${day}T${time}`;
  return new Date(spanOfRange({ from: clock, to: clock }, zone).start.valueOf()).toISOString();
}
