// What the server uses and is: its load, its hits, the names it goes by.

import type { Usage } from "../api/types.ts";
import { type Answer, useAsk } from "./ask.ts";

/** Ask for the server's usage. `isDemo` holds where nothing can be changed. */
export function useUsage(): Answer<Usage> & { isDemo: boolean } {
  const answer = useAsk<Usage>("/user/usage");
  return { ...answer, isDemo: answer.data?.service.demo === true };
}
