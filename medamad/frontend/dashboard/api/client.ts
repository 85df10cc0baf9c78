// The API client: requests, their errors, and detection of a new build.

import { signal } from "@preact/signals";
import { session } from "../state/local-storage.ts";
import { at } from "../state/paths.ts";
import { shareId } from "../state/share.ts";

const ROOT = at("/api");
const RELOADED_FOR = "medamad.reloaded-for";
const SHARE_KEY = `medamad.share-key.${shareId}`;

/** An unsuccessful response. `status` is 0 if the daemon could not be reached. */
export class ApiError extends Error {
  constructor(
    readonly status: number,
    message: string,
    /** Seconds until a retry, as the daemon says. */
    readonly retryAfter = 0,
  ) {
    super(message);
  }

  get isAway(): boolean {
    return this.status === 0 || this.status >= 502;
  }
}

/** Whether the last request got no response. */
export const isAway = signal(false);

/** Why the daemon could not answer the last request that failed, if it said so itself. */
export const awayReason = signal("");

/** Called when a response says that nobody is logged in. */
let loggedOut = () => {};

export function onLoggedOut(call: () => void): void {
  loggedOut = call;
}

/** The key of the page's share link: its id, or the key obtained with its password. */
let shareKey = shareId && (session?.getItem(SHARE_KEY) ?? shareId);

/** Use a share key, in this tab also after a reload; the daemon decides when it expires. */
export function showShare(key: string): void {
  shareKey = key;
  session?.setItem(SHARE_KEY, key);
}

const noteBuild = buildWatch(session, () => location.reload());

type Parameters = URLSearchParams | Record<string, string>;

/** The URL of an API resource. */
export function address(path: string, parameters?: Parameters): string {
  const query = new URLSearchParams(parameters).toString();
  return `${ROOT}${path}${query && `?${query}`}`;
}

/** The path of a website's statistic, such as "summary". */
export function statistic(hostname: string, name: string): string {
  return `/website/${encodeURIComponent(hostname)}/${name}`;
}

/** Read a resource. Throws ApiError; a cancelled request throws the signal's reason. */
export function read<T>(path: string, parameters?: Parameters, cancel?: AbortSignal): Promise<T> {
  return send<T>("GET", address(path, parameters), undefined, cancel);
}

/** Read a resource, and what its response does not cover. Throws like `read`. */
export async function readWithPartial<T>(
  path: string,
  parameters?: Parameters,
  cancel?: AbortSignal,
): Promise<{ data: T; partial: string | null }> {
  let partial: string | null = null;
  const data = await send<T>("GET", address(path, parameters), undefined, cancel, (headers) => {
    partial = headers.get("X-Medamad-Partial");
  });
  return { data, partial };
}

/** Read what a resource's response would not cover. Throws like `read`. */
export async function readPartial(
  path: string,
  parameters: Parameters,
  cancel: AbortSignal,
): Promise<string | null> {
  let partial: string | null = null;
  await send("HEAD", address(path, parameters), undefined, cancel, (headers) => {
    partial = headers.get("X-Medamad-Partial");
  });
  return partial;
}

/** Change a resource. Throws ApiError. */
export function change<T = void>(
  method: "POST" | "PATCH" | "DELETE",
  path: string,
  body?: object,
): Promise<T> {
  return send<T>(method, address(path), body);
}

async function send<T>(
  method: string,
  url: string,
  body?: object,
  cancel?: AbortSignal,
  tell: (headers: Headers) => void = () => {},
): Promise<T> {
  let answer: Response;
  try {
    answer = await fetch(url, {
      method,
      // A share link is viewed without the account, even in its owner's browser.
      credentials: shareKey ? "omit" : "same-origin",
      headers: {
        ...(shareKey && { "X-Medamad-Share": shareKey }),
        ...(body && { "Content-Type": "application/json" }),
      },
      ...(cancel && { signal: cancel }),
      ...(body && { body: JSON.stringify(body) }),
    });
  } catch (error) {
    if (cancel?.aborted) throw error;
    isAway.value = true;
    awayReason.value = "";
    throw new ApiError(0, "");
  }
  noteBuild(answer.headers.get("X-Api-Commit"));
  isAway.value = answer.status >= 502;
  if (answer.ok) {
    tell(answer.headers);
    const text = await answer.text();
    return (text && JSON.parse(text)) as T;
  }
  if (answer.status === 401 && !url.startsWith(`${ROOT}/auth/`)) loggedOut();
  const retryAfter = Number(answer.headers.get("Retry-After")) || 0;
  const message = await messageOf(answer);
  awayReason.value = answer.status === 503 ? message : "";
  throw new ApiError(answer.status, message, retryAfter);
}

async function messageOf(answer: Response): Promise<string> {
  try {
    const { error } = (await answer.json()) as { error?: { message?: string } };
    return error?.message ?? answer.statusText;
  } catch {
    return answer.statusText;
  }
}

/**
 * Return a function for the build that each response names. It reloads the page when the daemon
 * runs another build; never twice for the same one, which `kept` remembers.
 */
export function buildWatch(
  kept: Storage | undefined,
  reload: () => void,
): (commit: string | null) => void {
  let build: string | null = null;
  return (commit) => {
    if (!commit) return;
    build ??= commit;
    const reloadedFor = kept?.getItem(RELOADED_FOR)?.split(" ") ?? [];
    if (kept && commit !== build && !reloadedFor.includes(commit)) {
      kept.setItem(RELOADED_FOR, [...reloadedFor, commit].join(" "));
      reload();
    }
  };
}
