// To come.

export function WebsitesPage() {
  return <main class="page" />;
}
