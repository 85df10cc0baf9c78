// What this browser keeps from one visit to the next; nothing where it keeps nothing, as in the
// frames of other websites.

function kept(storage: () => Storage): Storage | undefined {
  try {
    return storage();
  } catch {
    return undefined;
  }
}

export const local = kept(() => localStorage);
export const session = kept(() => sessionStorage);
