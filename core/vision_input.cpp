#include "core/vision_input.h"

#include <algorithm>

#include "core/error.h"

namespace gigpo {

static int64_t values_of(const VisionConfig& tower, const std::array<int64_t, 3>& grid) {
  const int64_t patches = tower.side > 0 ? grid[0] * tower.tile_patches() : grid[0] * grid[1] * grid[2];
  return patches * tower.patch_columns();
}

void Image::check(const VisionConfig& tower) const {
  const auto refuse = [&](const std::string& what) {
    throw Error("BAD_ARGUMENT", "An image " + what + " Preprocess it with the model's own image processor.");
  };
  const std::string text = std::to_string(grid[0]) + " × " + std::to_string(grid[1]) + " × " + std::to_string(grid[2]);
  constexpr int64_t most = 1 << 20;
  for (const int64_t extent : grid) {
    if (extent < 1 || extent > most) refuse("has the grid " + text + ", whose extents must be from 1 to " + std::to_string(most) + ".");
  }
  if (grid[0] * grid[1] > most || grid[0] * grid[1] * grid[2] > most) refuse("has the grid " + text + ", of too many patches.");
  if (tower.side > 0) {
    if (grid[1] != 1 || grid[2] != 1) refuse("has the grid " + text + ", but this model reads tiles of one size: the grid must be tiles × 1 × 1.");
    if (grid[0] * tower.tile_patches() > most) refuse("has " + std::to_string(grid[0]) + " tiles, which are too many patches.");
  } else {
    if (grid[0] != 1) refuse("has " + std::to_string(grid[0]) + " frames, but videos are not supported.");
    if (grid[1] % tower.merge != 0 || grid[2] % tower.merge != 0)
      refuse("has the grid " + text + ", whose height and width must be multiples of " + std::to_string(tower.merge) + ".");
  }
  const int64_t wanted = values_of(tower, grid);
  if (int64_t(values.size()) != wanted)
    refuse("has " + std::to_string(values.size()) + " values, but its grid " + text + " needs " + std::to_string(wanted) + ".");
}

int64_t Image::features(const VisionConfig& tower) const { return values_of(tower, grid) / tower.patch_columns() / tower.group(); }

// Groups of merge × merge patches by windows, which at the right and lower border are smaller. `visit` gets row and column of each group.
template <class Visit, class End>
static void each_window(int64_t rows, int64_t columns, int64_t window, const Visit& visit, const End& end) {
  for (int64_t top = 0; top < rows; top += window) {
    for (int64_t left = 0; left < columns; left += window) {
      for (int64_t row = top; row < std::min(top + window, rows); row++) {
        for (int64_t column = left; column < std::min(left + window, columns); column++) visit(row, column);
      }
      end();
    }
  }
}

// The rows of a window are adjacent, so that its attention is a product of adjacent rows.
static VisionInput frame_input(const VisionConfig& tower, const Image& image) {
  const int64_t rows = image.grid[1] / tower.merge, columns = image.grid[2] / tower.merge, group = tower.group();
  VisionInput input;
  input.rows = rows * columns * group;
  input.frames = {{0, input.rows}};
  int64_t begun = 0;
  const int64_t window = tower.window > 0 ? tower.window : std::max(rows, columns);
  each_window(rows, columns, window, [&](int64_t row, int64_t column) {
    const int64_t feature = row * columns + column, values = group * tower.patch_columns();
    input.features.push_back(int32_t(feature));
    input.patches.insert(input.patches.end(), image.values.begin() + feature * values, image.values.begin() + (feature + 1) * values);
    for (int64_t i = 0; i < group; i++)
      input.places.push_back({int32_t(row * tower.merge + i / tower.merge), int32_t(column * tower.merge + i % tower.merge)});
  }, [&] {
    const auto now = int64_t(input.places.size());
    input.windows.push_back({begun, now - begun});
    begun = now;
  });
  return input;
}

// Appends the patch at `row` and `column` of a tile [channels][pixels][pixels].
static void append_patch(const VisionConfig& tower, const float* tile, int64_t row, int64_t column, std::vector<float>& to) {
  const int64_t size = tower.patch_size, pixels = tower.side * size;
  for (int64_t channel = 0; channel < tower.channels; channel++) {
    for (int64_t y = 0; y < size; y++) {
      const float* from = tile + (channel * pixels + row * size + y) * pixels + column * size;
      to.insert(to.end(), from, from + size);
    }
  }
}

static void append_tile(const VisionConfig& tower, const float* tile, VisionInput& input) {
  const int64_t features = tower.side / tower.merge;
  input.frames.push_back({input.rows, tower.tile_patches()});
  input.rows += tower.tile_patches();
  for (int64_t feature = 0; feature < features * features; feature++) {
    input.features.push_back(int32_t(input.features.size()));
    for (int64_t i = 0; i < tower.group(); i++) {
      const int64_t row = feature / features * tower.merge + i / tower.merge, column = feature % features * tower.merge + i % tower.merge;
      append_patch(tower, tile, row, column, input.patches);
      input.places.push_back({int32_t(row), int32_t(column)});
    }
  }
}

std::vector<VisionInput> vision_inputs(const VisionConfig& tower, const Image& image, int64_t most) {
  if (tower.side == 0) return {frame_input(tower, image)};
  std::vector<VisionInput> inputs;
  const int64_t values = tower.tile_patches() * tower.patch_columns();
  for (int64_t tile = 0; tile < image.grid[0]; tile++) {
    if (inputs.empty() || inputs.back().rows + tower.tile_patches() > most) {
      inputs.emplace_back();
      inputs.back().first_feature = tile * (tower.tile_patches() / tower.group());
    }
    append_tile(tower, image.values.data() + tile * values, inputs.back());
  }
  return inputs;
}

}  // namespace gigpo
