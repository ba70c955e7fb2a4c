import { badAnswer } from "./errors.ts"
import { checkedFile, type HubFile, type ListedFile } from "./listing.ts"
import { type HubRequest, request, withRetries } from "./request.ts"

/** Returns files with size and digest. Where a mirror's listing lacks them, they are read from the headers of each file, as in huggingface_hub. */
export async function describeFiles(
  hubRequest: HubRequest,
  commit: string,
  files: readonly ListedFile[],
): Promise<HubFile[]> {
  const described: HubFile[] = []
  for (const file of files) described.push(isDescribed(file) ? file : await describe(hubRequest, commit, file.path))
  return described
}

function isDescribed(file: ListedFile): file is HubFile {
  return file.size !== undefined && file.blob !== undefined
}

async function describe(hubRequest: HubRequest, commit: string, path: string): Promise<HubFile> {
  const { settings, name } = hubRequest
  const encoded = path.split("/").map(encodeURIComponent).join("/")
  const url = `${settings.endpoint}/${name.repository}/resolve/${commit}/${encoded}`
  const headers = await withRetries(hubRequest, () =>
    request(
      hubRequest,
      url,
      { method: "HEAD", accept: [301, 302, 303, 307, 308] },
      async (response) => response.headers,
    ),
  )
  const etag = headers.get("x-linked-etag") ?? headers.get("etag")
  const size = headers.get("x-linked-size") ?? headers.get("content-length")
  const blob = etag?.replace(/^W\//, "").replaceAll('"', "")
  const fail = (what: string) => badAnswer(new URL(settings.endpoint).host, what)
  return checkedFile(path, size === null || !/^\d{1,16}$/.test(size) ? size : Number(size), blob, fail)
}
