// To come.

export function AddPage() {
  return <main class="page" />;
}
