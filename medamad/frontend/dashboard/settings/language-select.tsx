// The choice of a language, each by its own name.

import type { TargetedEvent } from "preact";
import { LANGUAGES, type Language } from "../api/types.ts";

export const LANGUAGE_NAMES: Record<Language, string> = {
  en: "English",
  de: "Deutsch",
  fr: "Français",
  es: "Español",
  ja: "日本語",
  zh: "中文",
};

interface Properties {
  value: Language | undefined;
  onChange: (wanted: Language) => void;
  disabled?: boolean;
  /** The id of what names it. */
  labelledBy: string;
}

export function LanguageSelect({ value, onChange, disabled = false, labelledBy }: Properties) {
  return (
    <select
      aria-labelledby={labelledBy}
      disabled={disabled}
      value={value}
      onChange={(event: TargetedEvent<HTMLSelectElement>) =>
        onChange(event.currentTarget.value as Language)
      }
    >
      {LANGUAGES.map((code) => (
        <option key={code} value={code} lang={code}>
          {LANGUAGE_NAMES[code]}
        </option>
      ))}
    </select>
  );
}
