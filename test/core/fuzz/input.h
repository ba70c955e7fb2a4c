// A fuzz target: a function of bytes, which libFuzzer or the driver of this folder calls. It ends normally, whatever the bytes are; a crash, a
// sanitizer's report and an exception that leaves it are findings.
#pragma once
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <limits>
#include <string>
#include <vector>

// One input. Returns 0.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace gigpo::test {

using Bytes = std::vector<uint8_t>;

// Inputs that are changed to make others. Each target defines it.
std::vector<Bytes> corpus();

// Reads the values of a target from the bytes of an input. After their end, values are zero.
class Input {
 public:
  Input(const uint8_t* data, size_t size) : data_(data), size_(size) {}

  size_t left() const { return size_; }
  template <class T>
  T take() {
    T value{};
    const size_t count = size_ < sizeof(T) ? size_ : sizeof(T);
    if (count > 0) std::memcpy(&value, data_, count);
    data_ += count, size_ -= count;
    return value;
  }
  uint8_t byte() { return take<uint8_t>(); }
  // From 0 to end - 1, at most 255; 0 if there is no such number.
  int below(int end) { return end > 0 ? byte() % end : 0; }
  bool chance() { return byte() & 1; }
  template <class T>
  std::vector<T> list(size_t count) {
    std::vector<T> values(count);
    for (T& value : values) value = take<T>();
    return values;
  }
  // A number that is mostly usual, and sometimes any or at a bound of its type.
  template <class T>
  T number(int usual) {
    constexpr T bounds[] = {T(-1), T(0), std::numeric_limits<T>::max(), std::numeric_limits<T>::min(), std::numeric_limits<T>::max() / 2 + 1};
    const int kind = below(16);
    return kind == 0 ? take<T>() : kind == 1 ? bounds[below(5)] : T(below(usual));
  }

 private:
  const uint8_t* data_;
  size_t size_;
};

// Bytes for the corpus, in the order in which a target reads them.
class Output {
 public:
  template <class T>
  Output& add(T value) {
    const auto* from = reinterpret_cast<const uint8_t*>(&value);
    bytes_.insert(bytes_.end(), from, from + sizeof(T));
    return *this;
  }
  Output& bytes(std::initializer_list<int> values) {
    for (const int value : values) bytes_.push_back(uint8_t(value));
    return *this;
  }
  operator Bytes() const { return bytes_; }

 private:
  Bytes bytes_;
};

// `count` inputs of random bytes.
std::vector<Bytes> random_inputs(size_t count, size_t longest);

}  // namespace gigpo::test
