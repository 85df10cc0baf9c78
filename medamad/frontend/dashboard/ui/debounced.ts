// Debounce a text that is being typed, so that not every letter causes a request.

import { useEffect, useState } from "preact/hooks";

const TYPING_MS = 250;

/** A text once it has not changed for a moment; an empty text immediately. */
export function useSettled(text: string): string {
  const [settled, setSettled] = useState(text);
  useEffect(() => {
    const timeout = setTimeout(() => setSettled(text), TYPING_MS);
    return () => clearTimeout(timeout);
  }, [text]);
  return text && settled;
}
