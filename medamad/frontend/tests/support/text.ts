// Texts as tests write them.

/** A text with usual spaces and hyphens for those that formats of dates have. */
export function plain(text: string | null | undefined): string {
  return (text ?? "")
    .replace(/\s*–\s*/g, "-")
    .replace(/\s+/g, " ")
    .trim();
}
