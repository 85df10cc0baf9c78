// The tracker: what it counts, its tags, and its settings for pages and visitors.

import type { ComponentChildren, TargetedSubmitEvent } from "preact";
import { useId, useState } from "preact/hooks";
import { FEATURES, type Feature } from "../api/types.ts";
import { t } from "../i18n/index.ts";
import { changeUser, user } from "../state/session.ts";
import { useUsage } from "../state/usage.ts";
import { Copyable } from "../ui/copy.tsx";
import { Filled } from "../ui/filled.tsx";
import { Refusal, Trouble } from "../ui/trouble.tsx";
import { pixelTag, scriptTag, scriptTagWith } from "../websites/tag.ts";
import { useSaving } from "./form-state.ts";

const EXAMPLES: Partial<Record<Feature, string>> = {
  "click-events": '<button data-m:click="signup=header; plan=free">Sign up</button>',
  "page-control":
    '<script defer src="…" data-exclude="^/admin/" data-before-send="checked" data-manual></script>',
  "page-events": '<main data-m:load="author=Ada; section=recipes">',
};

const CUSTOM_EVENT = "medamad('signup', { plan: 'free' })";

export function Tracker() {
  const saved = savedFeatures();
  const [chosen, setChosen] = useState<Feature[]>(saved);
  const { data: usage, error, isDemo } = useUsage();
  return (
    <>
      <Features chosen={chosen} saved={saved} choose={setChosen} isDemo={isDemo} />
      {!usage && error && <Trouble error={error} />}
      {usage && (
        <>
          <Part title={t("tracker.tag")}>
            <p class="soft">{t("tracker.tag-text")}</p>
            <Copyable text={scriptTag(usage.tracker)} label={t("tracker.tag")} />
            <details>
              <summary>{t("tracker.tag-chosen")}</summary>
              <div class="step">
                <p class="soft">{t("tracker.tag-chosen-text")}</p>
                <Copyable text={scriptTagWith(chosen)} label={t("tracker.tag-chosen")} />
              </div>
            </details>
          </Part>
          <Part title={t("tracker.pixel")}>
            <p class="soft">{t("setup.pixel-text")}</p>
            <Copyable text={pixelTag(usage.tracker)} label={t("setup.pixel-copy")} />
          </Part>
          <Part title={t("tracker.events")}>
            <p class="soft">{t("tracker.events-text")}</p>
            <Copyable text={CUSTOM_EVENT} label={t("tracker.events")} />
          </Part>
          <Part title={t("tracker.exclude")}>
            <p class="soft">
              <Filled
                text={t("tracker.exclude-text")}
                values={{
                  fragment: <code>#medamad-ignore</code>,
                  count: <code>#medamad-count</code>,
                }}
              />
            </p>
          </Part>
          <Part title={t("tracker.names")}>
            <p class="soft">
              <Filled
                text={t("tracker.names-text")}
                values={{
                  script: <code>script_name</code>,
                  event: <code>event_name</code>,
                  script_name: <code>{usage.tracker.script_name}</code>,
                  event_name: <code>{usage.tracker.event_name}</code>,
                }}
              />
            </p>
          </Part>
        </>
      )}
    </>
  );
}

function savedFeatures(): Feature[] {
  const saved = user.value?.settings.script_type ?? [];
  return FEATURES.filter((feature) => saved.includes(feature));
}

function Part({ title, children }: { title: string; children: ComponentChildren }) {
  const id = useId();
  return (
    <section class="card padded step" aria-labelledby={id}>
      <h2 id={id}>{title}</h2>
      {children}
    </section>
  );
}

interface FeaturesProperties {
  chosen: Feature[];
  saved: Feature[];
  choose: (features: Feature[]) => void;
  isDemo: boolean;
}

function Features({ chosen, saved, choose, isDemo }: FeaturesProperties) {
  const saving = useSaving();
  const toggle = (feature: Feature) => {
    choose(FEATURES.filter((other) => chosen.includes(other) !== (other === feature)));
    saving.forget();
  };
  const submit = (event: TargetedSubmitEvent<HTMLFormElement>) => {
    event.preventDefault();
    void saving.save(() =>
      changeUser({ settings: { script_type: chosen.length ? chosen : ["default"] } }),
    );
  };
  return (
    <section class="card padded">
      <form class="form" onSubmit={submit}>
        <fieldset class="features" aria-describedby="features-text">
          <legend>
            <h2>{t("tracker.features")}</h2>
          </legend>
          <p id="features-text" class="soft">
            {t("tracker.features-text")}
          </p>
          {FEATURES.map((feature) => (
            <div class="feature" key={feature}>
              <label>
                <input
                  type="checkbox"
                  checked={chosen.includes(feature)}
                  onChange={() => toggle(feature)}
                />
                {t(`tracker.${feature}`)}
              </label>
              <p class="soft">
                <Filled
                  text={t(`tracker.${feature}-text`)}
                  values={{
                    example: <code>/app#/orders/7</code>,
                    call: <code>medamad.view()</code>,
                  }}
                />
              </p>
              {EXAMPLES[feature] && (
                <pre>
                  <code>{EXAMPLES[feature]}</code>
                </pre>
              )}
            </div>
          ))}
        </fieldset>
        <Refusal error={saving.error} />
        <p class="saved" role="status">
          {saving.isSaved && t("tracker.saved")}
        </p>
        <div class="row">
          <button
            type="submit"
            class="button main"
            disabled={isDemo || saving.isBusy || chosen.join() === saved.join()}
          >
            {t("tracker.save")}
          </button>
        </div>
      </form>
    </section>
  );
}
