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

char* shared_at(uint32_t address);  // what shared_address gave; null where no shared memory of the block is
size_t shared_bytes();              // of the block; dynamic
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
bool copies_are_on_their_way();  // or may be: nobody has waited for them
// A product reads these 16 bytes: they must have arrived, or been fenced.
void check_async_read(uint32_t address);

// --- of warpgroups.cpp ---

bool product_reads(uint32_t from, uint32_t to);  // one that nobody has waited for
bool products_are_on_their_way(unsigned warp);
void forget_products();

}  // namespace gigpo::cuda::emulator
