// Local storage; nothing is kept where the browser refuses it, as in the
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
