// An account, and a server that keeps what is changed in it.

import type { Usage, User, UserChange, Website } from "../../dashboard/api/types.ts";
import { type Answers, type Asked, refusal } from "./page.tsx";

export const ADA: User = {
  username: "ada",
  settings: { language: "en", script_type: ["default"] },
  dateCreated: 1_750_000_000,
  dateUpdated: 1_750_000_001,
};

const GB = 2 ** 30;

export const USAGE: Usage = {
  cpu: { usage: 25, cores: 2, threads: 4 },
  memory: { used: GB, total: 4 * GB },
  disk: { used: 95 * GB, total: 100 * GB },
  process: { cpu: 3, memory: 80e6, threads: 9, uptime: 3_600 },
  storage: { used: GB, total: 100 * GB },
  hits: { accepted: 12, refused: [], unknown_hostnames: [] },
  tracker: { script_name: "script.js", event_name: "event" },
  service: {
    version: "1.2.3",
    commit: "abcdef0",
    licence: "GPL-3.0-or-later",
    demo: false,
    timezone: "Europe/Berlin",
    export_formats: ["csv", "ndjson"],
  },
};

/** The usage of a demonstration. */
export const DEMO: Usage = { ...USAGE, service: { ...USAGE.service, demo: true } };

/** What a server answers to the owner of websites of these names. */
export function owner(hostnames: readonly string[] = [], further: Answers = {}): Answers {
  let account = ADA;
  const websites = new Set(hostnames);
  const listed = () => [...websites].sort().map((hostname): Website => ({ hostname }));
  const register = (hostname: string, registers: () => void) => {
    if (websites.has(hostname)) return refusal(409, "hostname: is registered");
    if (!/^[a-z0-9-]+([.][a-z0-9-]+)*[.][a-z]+$/.test(hostname)) {
      return refusal(400, "hostname: is no hostname");
    }
    registers();
    websites.add(hostname);
    return { hostname };
  };
  const wanted = ({ body }: Asked) => (body as Website).hostname;
  const answers: Answers = {
    user: ({ method, body }) => {
      const { settings, username } = (method === "PATCH" ? body : {}) as UserChange;
      account = {
        ...account,
        ...(username && { username }),
        ...(method === "PATCH" && { dateUpdated: account.dateUpdated + 1 }),
        settings: { ...account.settings, ...settings },
      };
      return account;
    },
    "user/usage": USAGE,
    websites: (asked) =>
      asked.method === "POST" ? register(wanted(asked), () => undefined) : listed(),
    "auth/logout": null,
  };
  for (const hostname of hostnames) {
    answers[`websites/${hostname}`] = (asked) => {
      if (asked.method === "PATCH") {
        return register(wanted(asked), () => websites.delete(hostname));
      }
      websites.delete(hostname);
      return null;
    };
  }
  return { ...answers, ...further };
}
