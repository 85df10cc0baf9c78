// To come.

export function LoginPage() {
  return <main class="page" />;
}
