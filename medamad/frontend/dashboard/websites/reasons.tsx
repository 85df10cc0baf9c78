// Why hits were not counted, in words.

import { t } from "../i18n/index.ts";
import { Filled } from "../ui/filled.tsx";

const REASONS = [
  "hosting",
  "spam",
  "blocked",
  "origin",
  "gpc",
  "country",
  "path",
  "rate",
  "capacity",
  "malformed",
  "unknown-website",
] as const;

export function reasonText(reason: string) {
  if (reason === "bot") {
    return <Filled text={t("reason.bot")} values={{ setting: <code>[events] bots</code> }} />;
  }
  const known = REASONS.find((name) => name === reason);
  return known ? t(`reason.${known}`) : t("reason.other", { reason });
}
