// To come.

export function SettingsPage() {
  return <main class="page" />;
}
