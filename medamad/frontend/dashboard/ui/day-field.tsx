// A date field.

interface Properties {
  label: string;
  value: string;
  /** The last day that can be chosen. */
  last: string;
  onInput: (day: string) => void;
  /** Whether this field has the focus first. */
  hasFocus?: boolean;
}

export function DayField({ label, value, last, onInput, hasFocus = false }: Properties) {
  return (
    <label class="field">
      <span>{label}</span>
      <input
        type="date"
        autofocus={hasFocus}
        value={value}
        max={last}
        required
        onInput={(event) => onInput(event.currentTarget.value)}
      />
    </label>
  );
}
