// Speaks to the daemon: requests, what can go wrong with them, and whether a new build is there.

import { signal } from "@preact/signals";
import { session } from "../state/kept.ts";
import { shareId } from "../state/share.ts";

const ROOT = "/api";
const RELOADED_FOR = "medamad.reloaded-for";
const SHARE_KEY = `medamad.share-key.${shareId}`;

/** An answer that is no success. `status` is 0 when the daemon could not be reached. */
export class ApiError extends Error {
  constructor(
    readonly status: number,
    message: string,
    /** Seconds after which it may be tried again, as the daemon says. */
    readonly retryAfter = 0,
  ) {
    super(message);
  }

  get isAway(): boolean {
    return this.status === 0 || this.status >= 502;
  }
}

/** Whether the daemon did not answer when it was last asked. */
export const isAway = signal(false);

/** Called when an answer says that nobody is logged in. */
let loggedOut = () => {};

export function onLoggedOut(call: () => void): void {
  loggedOut = call;
}

/** What opens the share link that the page is of: its id, or what its password gave. */
let shareKey = shareId && (session?.getItem(SHARE_KEY) ?? shareId);

/** Show what a key opens, in this tab also after a reload; the daemon decides how long it does. */
export function showShare(key: string): void {
  shareKey = key;
  session?.setItem(SHARE_KEY, key);
}

type Parameters = URLSearchParams | Record<string, string>;

/** The address of a resource of the interface. */
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

/** Read a resource, and what the daemon says its answer is without. Throws as `read` does. */
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

/** Read what a resource would be without, as the daemon says it. Throws as `read` does. */
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
      // Whoever looks at a share link is nobody's account, even in the browser of its owner.
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
    throw new ApiError(0, "");
  }
  reloadForNewBuild(answer.headers.get("X-Api-Commit"));
  isAway.value = answer.status >= 502;
  if (answer.ok) {
    tell(answer.headers);
    const text = await answer.text();
    return (text && JSON.parse(text)) as T;
  }
  if (answer.status === 401 && !url.startsWith(`${ROOT}/auth/`)) loggedOut();
  const retryAfter = Number(answer.headers.get("Retry-After")) || 0;
  throw new ApiError(answer.status, await messageOf(answer), retryAfter);
}

async function messageOf(answer: Response): Promise<string> {
  try {
    const { error } = (await answer.json()) as { error?: { message?: string } };
    return error?.message ?? answer.statusText;
  } catch {
    return answer.statusText;
  }
}

let build: string | null = null;

/** Load the page once more when the daemon was replaced by another build; never twice for one. */
function reloadForNewBuild(commit: string | null): void {
  if (!commit) return;
  build ??= commit;
  const reloadedFor = session?.getItem(RELOADED_FOR)?.split(" ") ?? [];
  if (session && commit !== build && !reloadedFor.includes(commit)) {
    session.setItem(RELOADED_FOR, [...reloadedFor, commit].join(" "));
    location.reload();
  }
}
