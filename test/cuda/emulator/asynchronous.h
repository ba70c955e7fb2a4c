// What bulk copies (bulk_copies.cpp) and products (warpgroups.cpp) that are on their way know of each other, and what the
// scheduler (emulator.cpp) has to ask of them. All of it belongs to the block that runs.
#pragma once
#include <cstddef>
#include <cstdint>

#include "cuda.h"
#include "emulator.h"
#include "fiber.h"
#include "scheduler.h"
#include "unlooked.h"

namespace gigpo::cuda::emulator {

// --- of emulator.cpp ---

// Addresses are those of a cluster's shared memory: each of its blocks has as many as an operand's descriptor can name.
constexpr uint32_t window_bytes = 1 << 18;
char* shared_at(uint32_t address);  // what shared_address gave; null where no shared memory of the cluster is
size_t shared_bytes();              // of a block; dynamic
constexpr uint32_t first_address = 128;
unsigned cluster_size();
unsigned rank_of_warp(unsigned warp);
// The same place in the shared memory of another block of the cluster, which must not have ended.
void* in_block(const char* what, void* own, unsigned rank);
unsigned thread_number();
unsigned random_below(unsigned limit);
void sleep(const char* what, const Place& place);  // until another thread, or what arrives, wakes it
void wake(unsigned thread);

// --- of tensor_maps.cpp ---

struct TensorMap {
  const char* data;
  uint64_t size[2], stride;  // columns and rows; bytes
  uint32_t box[2];
};
TensorMap tensor_map(const CUtensorMap* map);

// The 128-byte swizzle: the chunks of 16 bytes in a line of 128 are permuted by the line's number, modulo 8.
inline uint32_t swizzled(uint32_t address) { return address ^ (address >> 3 & 0x70); }

// --- of bulk_copies.cpp ---

bool copy_arrives();  // one that is on its way, if there is one
void forget_copies();
bool copies_are_on_their_way(unsigned rank);  // to this block; or may be: nobody has waited for them
// Other blocks have reached into this one's shared memory since they all met: they may do so again when it has ended.
bool reached_from_elsewhere(unsigned rank);
void cluster_has_met();
// A product reads these 16 bytes: they must have arrived, or been fenced.
void check_async_read(uint32_t address);

// --- of warpgroups.cpp ---

bool product_reads(uint32_t from, uint32_t to);  // one that nobody has waited for
bool products_are_on_their_way(unsigned warp);
void forget_products();

}  // namespace gigpo::cuda::emulator
