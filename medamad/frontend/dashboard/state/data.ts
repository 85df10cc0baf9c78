// Data loading: the last data stays on the page while it is refreshed.

import { signal } from "@preact/signals";
import { useEffect, useLayoutEffect, useState } from "preact/hooks";
import { ApiError, isAway, readWithPartial } from "../api/client.ts";
import { notePartial } from "./partial.ts";

const REFRESH_MS = 30_000;
const RETRY_MS = 5_000;
const KEPT_ANSWERS = 200;

/** Increments when all figures on the page should be refreshed. */
export const refreshes = signal(0);

/** Refresh all figures on the page. */
export function refresh(): void {
  refreshes.value += 1;
}

let next = 0;
let inProgress = 0;

/** Refresh periodically while the page is visible; more often while the daemon is unreachable. */
export function keepFresh(): void {
  const schedule = () => {
    clearTimeout(next);
    if (!document.hidden) {
      next = window.setTimeout(
        () => {
          refresh();
          schedule();
        },
        isAway.value ? RETRY_MS : REFRESH_MS,
      );
    }
  };
  isAway.subscribe((away) => {
    document.documentElement.toggleAttribute("data-away", away);
    schedule();
  });
  document.addEventListener("visibilitychange", () => {
    if (!document.hidden) refresh();
    schedule();
  });
}

/**
 * Refresh more often while a component is mounted and the page visible; 0 for the default.
 * Requests in progress are awaited, since a refresh would cancel them.
 */
export function useFresh(everyMs: number): void {
  useEffect(() => {
    if (!everyMs) return undefined;
    const interval = setInterval(() => {
      if (!document.hidden && !inProgress) refresh();
    }, everyMs);
    return () => clearInterval(interval);
  }, [everyMs]);
}

export interface Answer<T> {
  /**
   * The data of this query, or of the previous one until this one succeeds or is refused; also
   * while the daemon is unreachable.
   */
  data: T | undefined;
  /** Whether `data` belongs to the previous query. */
  isStale: boolean;
  isLoading: boolean;
  error: ApiError | undefined;
  /** What `data` does not cover, as the daemon says. */
  partial: string | null;
}

interface Kept {
  data: unknown;
  partial: string | null;
}

const kept = new Map<string, Kept>();

function keep(question: string, answer: Kept): void {
  kept.delete(question);
  kept.set(question, answer);
  if (kept.size > KEPT_ANSWERS) kept.delete(kept.keys().next().value as string);
}

/** Clear all data, which another account may not see. */
export function forgetAnswers(): void {
  kept.clear();
}

/** Count requests in progress. */
async function counted<T>(answer: Promise<T>): Promise<T> {
  inProgress += 1;
  try {
    return await answer;
  } finally {
    inProgress -= 1;
  }
}

const NONE = () => new URLSearchParams();

/**
 * Request a resource, and again on each refresh. Without a path nothing is requested.
 * `parameters` is called for each request, for periods that end now; `key` changes when the
 * query does. With `everyMs`, it is also requested again that long after each response, while the
 * page is visible; when `everyMs` changes, at once.
 */
export function useAsk<T>(
  path: string | null,
  parameters: () => URLSearchParams = NONE,
  key = String(parameters()),
  everyMs = 0,
): Answer<T> {
  const question = path === null ? "" : `${path} ${key}`;
  const [answer, setAnswer] = useState<{ question: string; data: T; partial: string | null }>();
  const [failure, setFailure] = useState<{ question: string; error: ApiError }>();
  const [isLoading, setLoading] = useState(path !== null);
  const [ownTurn, setOwnTurn] = useState(0);
  const turn = refreshes.value;

  // Requested before the page is painted, to save time.
  useLayoutEffect(() => {
    if (path === null) return undefined;
    const abort = new AbortController();
    setLoading(true);
    setFailure((before) => (before?.error.isAway ? undefined : before));
    counted(readWithPartial<T>(path, parameters(), abort.signal)).then(
      ({ data, partial }) => {
        notePartial(question, partial);
        keep(question, { data, partial });
        setAnswer({ question, data, partial });
        setFailure(undefined);
        setLoading(false);
      },
      (error) => {
        if (abort.signal.aborted) return;
        if (!(error instanceof ApiError)) throw error;
        setFailure({ question, error });
        setLoading(false);
      },
    );
    return () => abort.abort();
  }, [question, turn, ownTurn, everyMs]);

  useEffect(() => {
    if (!everyMs || isLoading) return undefined;
    // A page that becomes visible is refreshed, which begins a new turn.
    const next = setTimeout(() => !document.hidden && setOwnTurn((last) => last + 1), everyMs);
    return () => clearTimeout(next);
  }, [everyMs, isLoading, turn, ownTurn]);

  useEffect(() => () => notePartial(question, null), [question]);

  const current = answer?.question === question ? answer : kept.get(question);
  const known = current?.data as T | undefined;
  const failed = failure?.question === question ? failure.error : undefined;
  // The page says once that the daemon is unreachable.
  const error = failed?.isAway && isAway.value ? undefined : failed;
  // No old data replaces what could not be loaded.
  const data = known ?? (error ? undefined : answer?.data);
  const partial = (current ?? answer)?.partial ?? null;
  return { data, isStale: known === undefined && data !== undefined, isLoading, error, partial };
}
