// To come.

export function SetupPage() {
  return <main class="page" />;
}
