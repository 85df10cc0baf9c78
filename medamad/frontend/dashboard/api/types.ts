// The types of the API, as in /openapi.yaml. Durations are in milliseconds,
// times in Unix seconds, percentages fractions from 0 to 1.

export const LANGUAGES = ["en", "de", "fr", "es", "ja", "zh"] as const;
export type Language = (typeof LANGUAGES)[number];

export const FEATURES = [
  "click-events",
  "page-events",
  "outbound-links",
  "file-downloads",
  "not-found",
  "hash-routing",
  "page-control",
] as const;
export type Feature = (typeof FEATURES)[number];

export interface User {
  username: string;
  settings: { language: Language; script_type: ("default" | Feature)[] };
  dateCreated: number;
  dateUpdated: number;
}

export interface UserChange {
  username?: string;
  password?: string;
  settings?: Partial<User["settings"]>;
}

export interface Website {
  hostname: string;
  /** Of the last day. Visits come where visitors are not counted. */
  summary?: { visitors: number; visits?: number };
  quietSince?: number;
  limitsReached?: string[];
}

/** What becomes of hits from networks of hosting providers. */
export type HostingRule = "count" | "count apart" | "ignore";

/** A rule of what is left out of all figures. */
export interface Exclusion {
  id: string;
  name: string;
  /** As in a query string. */
  filters: string;
  start?: string;
  end?: string;
  created: number;
  views: number;
  visits?: number;
}

/** A flood that a rule would leave out. */
export interface Suggestion {
  /** As in a query string. */
  filters: string;
  start: string;
  end: string;
  visits: number;
  /** Of all visits in these hours. */
  visits_percentage: number;
  views: number;
  usual_visits: number;
}

/** What counts on a website; null stands for what is configured. */
export interface WebsiteSettings {
  bots: "declared" | "strict" | "off" | null;
  hosting: HostingRule | null;
  respect_gpc: boolean | null;
  blocked_networks: string[];
  blocked_countries: string[];
  allowed_hosts: string[];
  excluded_paths: string[];
  redacted_paths: string[];
  redact_uuids: boolean;
  redact_hexadecimal: boolean;
  redact_emails: boolean;
  kept_parameters: string[];
  configured: {
    bots: "declared" | "strict" | "off";
    hosting: HostingRule;
    respect_gpc: boolean;
  };
}

/** What would become of the paths that are stored. */
export interface SettingsPreview {
  paths: number;
  redacted: number;
  excluded: number;
  /** The first paths that change; null is not counted. */
  changes: { path: string; stored: string | null }[];
}

export const PURPOSES = [
  "search",
  "ai-training",
  "ai-answer",
  "preview",
  "monitoring",
  "library",
  "unknown",
] as const;
export type Purpose = (typeof PURPOSES)[number];

/** Page loads in followed logs; the days are missing if there are none to compare. */
export interface BlindSpot {
  first?: string;
  last?: string;
  loads: number;
  robots: number;
  counted: number;
  unseen: number;
  rows: {
    browser?: string;
    path?: string;
    date?: string;
    loads: number;
    counted: number;
    unseen: number;
  }[];
}

/** Pages that robots read: the row has what is counted by. */
export interface RobotRow {
  name?: string;
  operator?: string;
  purpose?: Purpose;
  path?: string;
  date?: string;
  requests: number;
  requests_percentage: number;
}

export interface Refused {
  reason: string;
  hits: number;
  last: number;
}

/** The pages that are open now, which stand for visitors; on demand, the first rows of lists. */
export interface Live {
  visitors: number;
  pages?: Row[];
  sources?: Row[];
  countries?: Row[];
  events?: PropertyRow[];
}

export interface Figures {
  visitors: number;
  pageviews: number;
  bounce_percentage: number;
  duration: number;
  visits?: number;
  visit_pageviews?: number;
  views_per_visit?: number;
  visit_bounce_percentage?: number;
  visit_duration?: number;
  new_visitors?: number;
  returning_visitors?: number;
  week_visitors?: number;
  month_visitors?: number;
}

export interface Bucket extends Figures {
  date: string;
}

export interface Summary {
  current: Figures;
  previous?: Figures;
  interval?: Bucket[];
  /** False where the server counts no visitors. */
  visitors_counted?: boolean;
  hosting_known?: boolean;
}

/** A row of any statistic: its value is under the statistic's own name. */
export interface Row {
  visitors: number;
  visitors_percentage: number;
  pageviews?: number;
  pageviews_percentage?: number;
  bounce_percentage?: number;
  duration?: number;
  [name: string]: string | number | undefined;
}

export interface TimeRow {
  path: string;
  duration: number;
  duration_percentage: number;
  total_duration?: number;
  visitors?: number;
  duration_upper_quartile?: number;
  duration_lower_quartile?: number;
}

export interface PropertyRow {
  name: string;
  value?: string;
  events: number;
  events_percentage: number;
}

/** What a website wants of its visits: a page that is opened, or an event. */
export interface Goal {
  id: string;
  name: string;
  path?: string;
  event?: string;
  value?: string;
  revenue?: string;
  currency?: string;
}

/** What happened to a website: on a day, as 2026-01-31, or at a second in UTC. */
export interface Annotation {
  id: string;
  time: string;
  text: string;
  link?: string;
}

export interface GoalFigures {
  id: string;
  name: string;
  conversions: number;
  visits?: number;
  visits_percentage?: number;
  revenue?: { sum: number | string; currency: string };
}

/** A figure of two periods. */
export interface Change {
  before: number;
  now: number;
  difference: number;
}

export type ChangedDimension = "source" | "entry_page" | "country" | "device" | "campaign" | "goal";

export interface ChangedPart extends Change {
  name: string;
  /** Null where it is unknown whether chance explains the difference. */
  by_chance: boolean | null;
}

/** What changed between two periods. The parts of each dimension and the others add up to it. */
export interface Changes extends Change {
  metric: string;
  currency?: string;
  earlier_weeks: number;
  by_chance: boolean | null;
  dimensions: {
    dimension: ChangedDimension;
    parts: ChangedPart[];
    others: Change & { parts: number };
  }[];
  pairs: (Change & { parts: { dimension: ChangedDimension; name: string }[] })[];
}

/** Goals that a visit reaches in order, by their ids. */
export interface Funnel {
  id: string;
  name: string;
  goals: string[];
}

export interface FunnelFigures {
  id: string;
  name: string;
  steps: { goal: string; name: string; visits: number; visits_percentage: number }[];
}

export type Scope = "read" | "send" | "annotate" | "full";

export interface Token {
  id: string;
  name: string;
  scope: Scope;
  websites: string[] | null;
  dateCreated: number;
  dateExpires: number | null;
  dateLastUsed: number | null;
}

export type WebsiteAlertKind = "quiet" | "spike" | "drop" | "referrer" | "goal" | "no-goal";
export type ServiceAlertKind = "disk" | "backup" | "limits" | "damage" | "import";
export type AlertKind = WebsiteAlertKind | ServiceAlertKind;
export type AlertFormat = "json" | "slack" | "discord" | "ntfy" | "mail";

export interface Alert {
  id: string;
  kind: AlertKind;
  threshold?: number;
  goal?: string;
  hours?: number;
  /** The webhook, without its path. */
  url?: string;
  /** The id of the mailed report whose address gets mails. */
  report?: string;
  format: AlertFormat;
  /** Signs what is sent as JSON. */
  secret?: string;
  /** In Unix seconds; null for never. */
  dateFired: number | null;
  /** Since when something that was reported goes on; null if nothing does. */
  dateBegan: number | null;
  /** Why the last message did not arrive. */
  failure: string | null;
}

/** What came of trying an alert. */
export interface AlertTrial {
  text: string;
  firing: boolean;
  failure: string | null;
}

export interface Report {
  id: string;
  address: string;
  websites: string[];
  every: "week" | "month";
  day: number;
  hour: number;
  timezone: string;
  language: Language;
  confirmed: boolean;
  dateCreated: number;
  /** Why the last attempt to mail it failed, in the mail server's words. */
  failure?: string;
}

export interface Share {
  id: string;
  name: string;
  protected: boolean;
  embed: string[];
  dateCreated: number;
}

/** What a share link reveals: the hostname only once it is unlocked. */
export interface Shared {
  protected: boolean;
  hostname?: string;
}

export type ExportFormat = "csv" | "ndjson" | "parquet";

export interface Usage {
  cpu: { usage: number; cores: number; threads: number };
  memory: { used: number; total: number };
  disk: { used: number; total: number };
  process: { cpu: number; memory: number; threads: number; uptime: number };
  storage: { used: number; total: number };
  /** Which collector answers, if there are several, and whose hits are missing. */
  collectors?: { this: number; silent: number[] };
  hits: {
    accepted: number;
    refused: Refused[];
    unknown_hostnames: { hostname: string; hits: number; last: number }[];
  };
  tracker: { script_name: string; event_name: string };
  service: {
    version: string;
    commit: string;
    licence: string;
    demo: boolean;
    timezone: string;
    export_formats: ExportFormat[];
  };
}
