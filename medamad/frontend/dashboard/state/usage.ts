// The server's usage, hits and names.

import type { Usage } from "../api/types.ts";
import { type Answer, useAsk } from "./data.ts";

/** Request the server's usage. `isDemo` is true if nothing can be changed. */
export function useUsage(): Answer<Usage> & { isDemo: boolean } {
  const answer = useAsk<Usage>("/user/usage");
  return { ...answer, isDemo: answer.data?.service.demo === true };
}
