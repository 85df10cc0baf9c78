// Resource usage of the server, and hits received.

import { useId } from "preact/hooks";
import type { Usage } from "../api/types.ts";
import { ago, bytes, figure, percent, t, tn } from "../i18n/index.ts";
import { useFresh } from "../state/data.ts";
import { at } from "../state/paths.ts";
import { useUsage } from "../state/usage.ts";
import { nameOf } from "../ui/hostnames.ts";
import { Trouble } from "../ui/trouble.tsx";
import { reasonText } from "../websites/reasons.tsx";
import { lasting } from "./duration.ts";

const FRESH_MS = 5_000;
const NEARLY_FULL = 0.9;

export function UsageFigures() {
  const { data: usage, error } = useUsage();
  useFresh(FRESH_MS);
  if (!usage) return error ? <Trouble error={error} /> : <span class="skeleton sites-skeleton" />;
  return (
    <>
      {usage.collectors && <Collectors {...usage.collectors} />}
      <Server {...usage} />
      <Process {...usage.process} />
      <Hits {...usage.hits} />
      {usage.hits.unknown_hostnames.length > 0 && (
        <Unknown hostnames={usage.hits.unknown_hostnames} isDemo={usage.service.demo} />
      )}
    </>
  );
}

function Collectors({ this: number, silent }: NonNullable<Usage["collectors"]>) {
  return (
    <>
      <p class="soft">{t("usage.collector", { number })}</p>
      {silent.length > 0 && <p>{t("usage.silent", { numbers: silent.join(", ") })}</p>}
    </>
  );
}

function Server({ cpu, memory, disk, storage }: Usage) {
  return (
    <section class="card padded form" aria-labelledby="usage-server">
      <h2 id="usage-server">{t("usage.server")}</h2>
      <div class="meters">
        <Meter
          label={t("usage.cpu")}
          share={cpu.usage / 100}
          text={`${percent(cpu.usage / 100)} · ${tn("usage.cores", cpu.threads)}`}
        />
        <SpaceMeter label={t("usage.memory")} {...memory} />
        <SpaceMeter label={t("usage.disk")} {...disk} />
        <SpaceMeter label={t("usage.store")} {...storage} />
      </div>
    </section>
  );
}

interface Space {
  label: string;
  used: number;
  total: number;
}

function SpaceMeter({ label, used, total }: Space) {
  const text = t("usage.of", { used: bytes(used), total: bytes(total) });
  return <Meter label={label} share={total ? used / total : 0} text={text} />;
}

function Meter({ label, share, text }: { label: string; share: number; text: string }) {
  const id = useId();
  return (
    <div class="meter-field">
      <span id={id}>{label}</span>
      <span class="soft">{text}</span>
      <meter
        class={share > NEARLY_FULL ? "meter full" : "meter"}
        aria-labelledby={id}
        aria-valuetext={text}
        value={share}
      />
    </div>
  );
}

function Process({ cpu, memory, threads, uptime }: Usage["process"]) {
  const rows = [
    [t("usage.process-cpu"), percent(cpu / 100)],
    [t("usage.process-memory"), bytes(memory)],
    [t("usage.process-threads"), figure(threads)],
    [t("usage.process-uptime"), lasting(uptime)],
  ];
  return (
    <section class="card padded form" aria-labelledby="usage-process">
      <h2 id="usage-process">{t("usage.process")}</h2>
      <dl class="facts">
        {rows.map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
    </section>
  );
}

function Hits({ accepted, refused }: Usage["hits"]) {
  return (
    <section class="card padded form" aria-labelledby="usage-hits">
      <h2 id="usage-hits">{t("usage.hits")}</h2>
      <p class="soft">{t("usage.hits-text")}</p>
      <dl class="facts">
        <div>
          <dt>{t("usage.accepted")}</dt>
          <dd>{figure(accepted)}</dd>
        </div>
        <div>
          <dt>{t("usage.refused")}</dt>
          <dd>{figure(refused.reduce((sum, { hits }) => sum + hits, 0))}</dd>
        </div>
      </dl>
      {refused.length === 0 ? (
        <p class="soft">{t(accepted > 0 ? "usage.none-refused" : "usage.no-hits")}</p>
      ) : (
        <table class="counted">
          <thead>
            <tr>
              <th scope="col">{t("usage.reason")}</th>
              <th scope="col">{t("usage.hits-column")}</th>
              <th scope="col">{t("usage.last")}</th>
            </tr>
          </thead>
          <tbody>
            {refused.map(({ reason, hits, last }) => (
              <tr key={reason}>
                <th scope="row">{reasonText(reason)}</th>
                <td>{figure(hits)}</td>
                <td>{ago(last, "narrow")}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </section>
  );
}

interface UnknownProperties {
  hostnames: Usage["hits"]["unknown_hostnames"];
  isDemo: boolean;
}

function Unknown({ hostnames, isDemo }: UnknownProperties) {
  return (
    <section class="card padded form" aria-labelledby="usage-unknown">
      <h2 id="usage-unknown">{t("usage.unknown")}</h2>
      <table class="counted">
        <thead>
          <tr>
            <th scope="col">{t("usage.hostname")}</th>
            <th scope="col">{t("usage.hits-column")}</th>
            <th scope="col">{t("usage.last")}</th>
            {!isDemo && (
              <th scope="col">
                <span class="hidden">{t("usage.add")}</span>
              </th>
            )}
          </tr>
        </thead>
        <tbody>
          {hostnames.map(({ hostname, hits, last }) => (
            <tr key={hostname}>
              <th scope="row" title={hostname}>
                {nameOf(hostname)}
              </th>
              <td>{figure(hits)}</td>
              <td>{ago(last, "narrow")}</td>
              {!isDemo && (
                <td>
                  <a
                    href={at(`/dashboard/add?hostname=${encodeURIComponent(hostname)}`)}
                    aria-label={t("usage.add-of", { hostname: nameOf(hostname) })}
                  >
                    {t("usage.add")}
                  </a>
                </td>
              )}
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}
