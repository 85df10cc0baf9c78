// The button that opens the dialog of a goal or funnel.

import { Pencil } from "lucide";
import { t } from "../i18n/index.ts";
import { shareId } from "../state/share.ts";
import { Icon } from "./icon.tsx";

/** A button for those who may change what has the name. */
export function Edit({ name, edit }: { name: string; edit: () => void }) {
  if (shareId) return null;
  const label = t("goals.edit", { name });
  return (
    <button type="button" class="row-more" aria-haspopup="dialog" title={label} onClick={edit}>
      <Icon of={Pencil} size={14} />
      <span class="hidden">{label}</span>
    </button>
  );
}
