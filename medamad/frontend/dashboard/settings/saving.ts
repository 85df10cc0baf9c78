// Forms that change something: whether they are busy, were refused, or have been saved.

import { useState } from "preact/hooks";
import { ApiError } from "../api/client.ts";

export interface Saving {
  isBusy: boolean;
  isSaved: boolean;
  error: ApiError | undefined;
  /** Run a change. Gives whether it was made; what was refused is in `error`. */
  save: (change: () => Promise<unknown>) => Promise<boolean>;
  /** Forget how the last change went, once something else is typed. */
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
