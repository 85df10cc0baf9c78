// A text that is being typed, once its reader pauses: what is asked for need not follow each letter.

import { useEffect, useState } from "preact/hooks";

const TYPING_MS = 250;

/** A text once it has not changed for a moment; an empty one at once. */
export function useSettled(text: string): string {
  const [settled, setSettled] = useState(text);
  useEffect(() => {
    const timeout = setTimeout(() => setSettled(text), TYPING_MS);
    return () => clearTimeout(timeout);
  }, [text]);
  return text && settled;
}
