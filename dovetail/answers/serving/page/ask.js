/* What the page asks of the worker, by addresses relative to its own. */
export async function ask(path) {
  const answer = await fetch(path, { headers: { Accept: "application/json" } });
  const body = await answer.text();
  let found;
  try { found = JSON.parse(body); } catch { found = { message: body.slice(0, 200) }; }
  if (!answer.ok) throw new Error(found.message || answer.statusText);
  return found;
}
export const below = name => name.split("/").map(encodeURIComponent).join("/");
