// The state of a form: busy, refused or saved.

import { useState } from "preact/hooks";
import { ApiError } from "../api/client.ts";

export interface Saving {
  isBusy: boolean;
  isSaved: boolean;
  error: ApiError | undefined;
  /** Run a change. Returns whether it succeeded; otherwise `error` is set. */
  save: (change: () => Promise<unknown>) => Promise<boolean>;
  /** Clear the result of the last change when something else is typed. */
  forget: () => void;
}

type State = "idle" | "busy" | "saved" | ApiError;

export function useSaving(): Saving {
  const [state, setState] = useState<State>("idle");
  return {
    isBusy: state === "busy",
    isSaved: state === "saved",
    error: state instanceof ApiError ? state : undefined,
    forget: () => setState("idle"),
    save: async (change) => {
      setState("busy");
      try {
        await change();
        setState("saved");
        return true;
      } catch (error) {
        if (!(error instanceof ApiError)) throw error;
        setState(error);
        return false;
      }
    },
  };
}
