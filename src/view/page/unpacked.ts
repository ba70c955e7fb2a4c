/** Response with the content of gzipped bytes in base64. */
export function unpacked(packed: string): Response {
  const bytes = Uint8Array.from(atob(packed), (character) => character.charCodeAt(0))
  return new Response(new Response(bytes).body!.pipeThrough(new DecompressionStream("gzip")))
}
