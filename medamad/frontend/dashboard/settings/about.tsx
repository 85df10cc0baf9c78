// About this software.

import { t } from "../i18n/index.ts";
import { useUsage } from "../state/usage.ts";
import { Filled } from "../ui/filled.tsx";
import { Trouble } from "../ui/trouble.tsx";

export function About() {
  const { data: usage, error } = useUsage();
  if (!usage) return error ? <Trouble error={error} /> : <span class="skeleton sites-skeleton" />;
  const { version, commit, licence } = usage.service;
  return (
    <>
      <section class="card padded form" aria-labelledby="about">
        <h2 id="about">medamad</h2>
        <p>{t("about.text")}</p>
        <dl class="facts">
          <div>
            <dt>{t("about.version")}</dt>
            <dd>{version}</dd>
          </div>
          <div>
            <dt>{t("about.build")}</dt>
            <dd>{commit}</dd>
          </div>
          <div>
            <dt>{t("about.licence")}</dt>
            <dd>{licence}</dd>
          </div>
        </dl>
      </section>
      <section class="card padded form" aria-labelledby="about-interface">
        <h2 id="about-interface">{t("about.interface")}</h2>
        <p>
          <Filled
            text={t("about.interface-text")}
            values={{
              link: (
                <a href="/openapi.yaml" target="_blank" rel="noopener">
                  {t("about.interface-link")}
                </a>
              ),
            }}
          />
        </p>
      </section>
    </>
  );
}
