// Compiles the addon's sources for other systems and checks that every undefined symbol exists there. The compiler is zig, a Clang that includes
// the headers of all systems.
//
//   node scripts/cross-compile.mjs                # all targets
//   node scripts/cross-compile.mjs x86_64-macos   # this target; several may be named
//
// Uses zig at GIGPO_ZIG, or from the PATH. Installation: python3 -m venv zig && zig/bin/pip install ziglang==0.17.0. GIGPO_ZIG is then the file
// zig/lib/python3.*/site-packages/ziglang/zig.
import { spawnSync } from "node:child_process"
import { chmodSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs"
import { createRequire } from "node:module"
import { availableParallelism, tmpdir } from "node:os"
import { join } from "node:path"
import { parseArgs } from "node:util"
import { root, run } from "./native-programs.mjs"

const headers = createRequire(import.meta.resolve("cmake-js/package.json"))("node-api-headers")
const build = join(root, "build-cross")
/**
 * CMake's names of each target, and the system's libraries in which symbols are looked up. Linux has no libraries here, because every build
 * links the addon there. With `unity`, sources are compiled together, which is faster but hides a missing #include.
 */
const targets = {
  "aarch64-macos": { system: "Darwin", processor: "arm64", libraries: ["-lSystem"], unity: false },
  "x86_64-windows-gnu": { system: "Windows", processor: "AMD64", libraries: ["-lkernel32", "-lucrtbase"], unity: true },
  "x86_64-macos": { system: "Darwin", processor: "x86_64", libraries: ["-lSystem"], unity: true },
  "aarch64-linux-gnu": { system: "Linux", processor: "aarch64", unity: true },
  "x86_64-linux-musl": { system: "Linux", processor: "x86_64", unity: true },
}

const { positionals } = parseArgs({ allowPositionals: true })
const unknown = positionals.find((name) => !(name in targets))
if (unknown) throw new Error(`${unknown} is not a target. Targets: ${Object.keys(targets).join(", ")}.`)
const zig = process.env.GIGPO_ZIG ?? "zig"
const cache = mkdtempSync(join(tmpdir(), "gigpo-zig-"))
const env = { ...process.env, ZIG_GLOBAL_CACHE_DIR: cache, ZIG_LOCAL_CACHE_DIR: cache }
try {
  if (works(zig, "version")) {
    for (const target of positionals.length > 0 ? positionals : Object.keys(targets)) compile(target)
  } else if (process.env.GIGPO_ZIG) throw new Error(`GIGPO_ZIG is ${zig}, which does not run.`)
  else console.log("Skipped: zig was not found; put it on the PATH or set GIGPO_ZIG.")
} finally {
  rmSync(cache, { recursive: true, force: true })
}

function works(command, ...args) {
  return spawnSync(command, args, { env }).status === 0
}

function configure(target, system, processor, options) {
  const folder = join(build, target)
  mkdirSync(folder, { recursive: true })
  const tool = (name, command) => {
    const file = join(folder, name)
    writeFileSync(file, `#!/bin/sh\nexec "${zig}" ${command} "$@"\n`)
    chmodSync(file, 0o755)
    return file
  }
  const all = {
    CMAKE_SYSTEM_NAME: system,
    CMAKE_SYSTEM_PROCESSOR: processor,
    CMAKE_CXX_COMPILER: tool("cxx", `c++ -target ${target} $GIGPO_COMPILE_ONLY`),
    CMAKE_AR: tool("ar", "ar"),
    CMAKE_RANLIB: tool("ranlib", "ranlib"),
    CMAKE_DLLTOOL: tool("dlltool", "dlltool"),
    CMAKE_INSTALL_NAME_TOOL: tool("install_name_tool", "version"), // nothing is installed
    CMAKE_TRY_COMPILE_TARGET_TYPE: "STATIC_LIBRARY",
    GIGPO_CUDA: "OFF",
    ...options,
  }
  // CMake identifies a compiler by linking a program. For that, zig would compile the C and C++ libraries of the target.
  run("cmake", ["-S", root, "-B", folder, ...Object.entries(all).map(([name, value]) => `-D${name}=${value}`)], {
    ...env,
    GIGPO_COMPILE_ONLY: "-c",
  })
  return (...names) =>
    run("cmake", ["--build", folder, "--parallel", String(availableParallelism()), "--target", ...names], env)
}

/** Compiles without optimization and without the C++ library, which zig contains only as source code. */
function compile(target) {
  const started = performance.now()
  const { system, processor, libraries, unity } = targets[target]
  const make = configure(target, system, processor, {
    CMAKE_BUILD_TYPE: "Debug",
    CMAKE_CXX_FLAGS: "-O0 -fno-sanitize=undefined -Werror",
    CMAKE_CXX_FLAGS_DEBUG: "-g0",
    CMAKE_UNITY_BUILD: unity ? "ON" : "OFF",
    CMAKE_UNITY_BUILD_BATCH_SIZE: 24,
    CMAKE_CXX_LINKER_LAUNCHER: "cmake;-E;true", // `missing` links instead
    CMAKE_JS_INC: headers.include_dir,
    CMAKE_JS_NODELIB_DEF: headers.def_paths.node_api_def,
  })
  make("gigpo")
  if (libraries) {
    const strange = missing(target, libraries).filter((name) => !isGiven(name))
    if (strange.length > 0) throw new Error(`${target}: nothing defines ${strange.join(", ")}.`)
  }
  const seconds = ((performance.now() - started) / 1000).toFixed(0)
  console.log(`${target}: compiles${libraries ? ", and every symbol is defined" : ""} (${seconds} s)`)
}

/** Undefined symbols of the addon, linked only with the system's libraries. */
function missing(target, libraries) {
  const folder = join(build, target)
  const objects = readdirSync(join(folder, "CMakeFiles"), { recursive: true })
    .filter((name) => /\.o(bj)?$/.test(name))
    .map((name) => join(folder, "CMakeFiles", name))
  const args = [
    "cc",
    "-target",
    target,
    "-nostdlib",
    "-fno-sanitize=undefined",
    "-shared",
    "-o",
    join(folder, "linked"),
  ]
  const { stderr } = spawnSync(zig, [...args, ...objects, ...libraries], { env, encoding: "utf8", maxBuffer: 2 ** 28 })
  const errors = stderr.split("\n").filter((line) => /\berror: /.test(line))
  const names = errors.map((line) => /undefined symbol: (.*)/.exec(line)?.[1])
  const other = errors[names.indexOf(undefined)]
  if (other) throw new Error(`${target}: ${other}`)
  if (!names.some((name) => /^_*(Znw|operator new)/.test(name)))
    throw new Error(`${target}: nothing was linked.\n${stderr}`)
  return [...new Set(names)]
}

/** Symbols from Node and from the libraries of the compiler, as the linker of macOS or of Windows (demangled) prints them. */
function isGiven(name) {
  const versions = Object.values(headers.symbols)
  const node = versions.flatMap((one) => [...one.js_native_api_symbols, ...one.node_api_symbols])
  return (
    node.includes(name.replace(/^_/, "")) ||
    /^_*Z(T[VTIS]|TC|GV|Tv\w*?_n\d+_)?(N[KVrO]*)?S[tabsiod]/.test(name) ||
    /^_*(Zn[wa]|Zd[la]|ZTVN10__cxxabiv1|cxa_|gxx_personality_|Unwind_)/.test(name) ||
    /^([\w ]+ )?(std::|__cxxabiv1::|operator (new|delete))/.test(name) ||
    /^_*(chkstk_ms|stack_chk_(fail|guard)|dso_handle|main|tls_index|bzero)$/.test(name) ||
    ["DllMainCRTStartup", "<root>: DllMainCRTStartup", "atexit", "snprintf"].includes(name)
  )
}
