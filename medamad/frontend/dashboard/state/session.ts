// Who is logged in.

import { signal } from "@preact/signals";
import { ApiError, change, isAway, onLoggedOut, read } from "../api/client.ts";
import type { User, UserChange } from "../api/types.ts";
import { speak } from "../i18n/index.ts";
import { forgetAnswers } from "./ask.ts";

/** The account; null when nobody is logged in, undefined as long as that is not known. */
export const user = signal<User | null | undefined>(undefined);

onLoggedOut(leave);

/** Nobody is logged in any more; who logs in next may be another one. */
function leave(): void {
  forgetAnswers();
  user.value = null;
}

/** Find out who is logged in. Gives whether anybody is; a daemon that is away leaves it open. */
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
 * Log in. Gives whether the browser kept the cookie: it refuses one that is for https alone when
 * the page came over plain http. Throws ApiError.
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
  await adopt(await change<User>("PATCH", "/user", wanted));
}

async function adopt(account: User): Promise<void> {
  await speak(account.settings.language);
  user.value = account;
}
