// Reading figures: what was last known stays on the page while it is asked for anew.

import { signal } from "@preact/signals";
import { useEffect, useLayoutEffect, useState } from "preact/hooks";
import { ApiError, isAway, readWithPartial } from "../api/client.ts";
import { notePartial } from "./partial.ts";

const REFRESH_MS = 30_000;
const RETRY_MS = 5_000;
const KEPT_ANSWERS = 200;

/** Counts up when all figures on the page are to be asked for anew. */
export const refreshes = signal(0);

/** Ask for all figures on the page anew. */
export function refresh(): void {
  refreshes.value += 1;
}

let next = 0;
let asked = 0;

/** Refresh from time to time, as long as the page is visible; sooner while the daemon is away. */
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
  isAway.subscribe(schedule);
  document.addEventListener("visibilitychange", () => {
    if (!document.hidden) refresh();
    schedule();
  });
}

/**
 * Refresh more often than usual while a component is shown and the page visible; 0 is as usual.
 * What is still under way then is waited for: to ask anew gives it up.
 */
export function useFresh(everyMs: number): void {
  useEffect(() => {
    if (!everyMs) return undefined;
    const interval = setInterval(() => {
      if (!document.hidden && !asked) refresh();
    }, everyMs);
    return () => clearInterval(interval);
  }, [everyMs]);
}

export interface Answer<T> {
  /** What is known: of this question, or of the one before until this is answered or fails. */
  data: T | undefined;
  /** Whether `data` answers another question than the one that is asked. */
  isStale: boolean;
  isLoading: boolean;
  error: ApiError | undefined;
}

const kept = new Map<string, unknown>();

function keep(question: string, data: unknown): void {
  kept.delete(question);
  kept.set(question, data);
  if (kept.size > KEPT_ANSWERS) kept.delete(kept.keys().next().value as string);
}

/** Forget all answers: another account may not see them. */
export function forgetAnswers(): void {
  kept.clear();
}

/** Count what is under way. */
async function counted<T>(answer: Promise<T>): Promise<T> {
  asked += 1;
  try {
    return await answer;
  } finally {
    asked -= 1;
  }
}

const NONE = () => new URLSearchParams();

/**
 * Ask for a resource, and again with each refresh. Without a path nothing is asked.
 * `parameters` gives them at the moment of asking, for periods that end now; `key` tells when the
 * question became another one.
 */
export function useAsk<T>(
  path: string | null,
  parameters: () => URLSearchParams = NONE,
  key = String(parameters()),
): Answer<T> {
  const question = path === null ? "" : `${path} ${key}`;
  const [answer, setAnswer] = useState<{ question: string; data: T }>();
  const [failure, setFailure] = useState<{ question: string; error: ApiError }>();
  const [isLoading, setLoading] = useState(path !== null);
  const turn = refreshes.value;

  // Asked before the page is painted: the answer is waited for, the picture is not.
  useLayoutEffect(() => {
    if (path === null) return undefined;
    const abort = new AbortController();
    setLoading(true);
    counted(readWithPartial<T>(path, parameters(), abort.signal)).then(
      ({ data, partial }) => {
        notePartial(question, partial);
        keep(question, data);
        setAnswer({ question, data });
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
  }, [question, turn]);

  useEffect(() => () => notePartial(question, null), [question]);

  const known = answer?.question === question ? answer.data : (kept.get(question) as T | undefined);
  const error = failure?.question === question ? failure.error : undefined;
  // Nothing old stands in the place of what could not be read.
  const data = known ?? (error ? undefined : answer?.data);
  return { data, isStale: known === undefined && data !== undefined, isLoading, error };
}
