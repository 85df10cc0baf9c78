// Who is logged in.

import { signal } from "@preact/signals";
import { ApiError, change, isAway, onLoggedOut, read } from "../api/client.ts";
import type { User, UserChange } from "../api/types.ts";
import { language, speak, speakAsBefore } from "../i18n/index.ts";
import { forgetAnswers } from "./data.ts";

/** The account; null if nobody is logged in, undefined while unknown. */
export const user = signal<User | null | undefined>(undefined);

onLoggedOut(leave);

/** Log out locally; someone else may log in next. */
function leave(): void {
  forgetAnswers();
  user.value = null;
}

/** Load the account. Returns whether anybody is logged in; unknown if the daemon is unreachable. */
export async function recognise(): Promise<boolean> {
  try {
    await adopt(await read<User>("/user"));
    return true;
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    if (error.status !== 401) isAway.value = true;
    return false;
  }
}

/**
 * Log in. Returns whether the browser kept the cookie: it rejects a secure cookie if
 * the page was loaded over plain HTTP. Throws ApiError.
 */
export async function logIn(username: string, password: string): Promise<boolean> {
  await change("POST", "/auth/login", { username, password });
  return recognise();
}

export async function logOut(): Promise<void> {
  try {
    await change("POST", "/auth/logout");
  } finally {
    leave();
  }
}

/** Change the account. Throws ApiError. */
export async function changeUser(wanted: UserChange): Promise<void> {
  // From now on, the language of the account counts: until then it was the browser's.
  const spoken = user.peek() && isNew(user.peek() as User) && language.peek();
  const settings = { ...(spoken && { language: spoken }), ...wanted.settings };
  const isEmpty = Object.keys(settings).length === 0;
  const body = { ...wanted, ...(!isEmpty && { settings }) };
  const changed = await change<User>("PATCH", "/user", body);
  // Within a second of its creation, the account's dates do not show the change.
  await speak(changed.settings.language);
  user.value = changed;
}

/** Whether nothing of an account was changed, so that no language was chosen. */
function isNew({ dateCreated, dateUpdated }: User): boolean {
  return dateCreated === dateUpdated;
}

async function adopt(account: User): Promise<void> {
  await (isNew(account) ? speakAsBefore() : speak(account.settings.language));
  user.value = account;
}
