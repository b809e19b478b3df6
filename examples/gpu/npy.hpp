// Arrays as .npy files, the form in which wirecall sends them: one that is received, as a view of the message, and one
// that is sent. Only numbers of this machine's byte order, row by row.
#pragma once

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstring>
#include <numeric>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "wirecall/wirecall.hpp"

static_assert(std::endian::native == std::endian::little);

namespace gpu {

struct ArrayView {
  std::string_view type;  ///< "<f4" for float, "|u1" for bytes
  std::vector<std::size_t> shape;
  std::span<const std::byte> data;  ///< as many bytes as type and shape say; not aligned

  [[nodiscard]] std::size_t size() const {
    return std::accumulate(shape.begin(), shape.end(), std::size_t{1}, std::multiplies{});
  }
};

/// Reads a .npy file, of which the view is one. False where it is none, or its elements are neither floats nor bytes,
/// or do not lie row by row.
inline bool read_npy(std::span<const std::byte> file, ArrayView& out) {
  const std::string_view text{reinterpret_cast<const char*>(file.data()), file.size()};
  constexpr std::size_t kHead = 10;  // the magic, the version, and the size of what follows in two bytes
  if (text.size() < kHead || !text.starts_with("\x93NUMPY\x01")) return false;
  const std::size_t begin = kHead + static_cast<unsigned char>(text[8]) + 256U * static_cast<unsigned char>(text[9]);
  if (begin > text.size()) return false;

  // {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }
  const std::string_view header = text.substr(kHead, begin - kHead);
  const auto between = [header](std::string_view start, char end) -> std::string_view {
    const std::size_t at = header.find(start);
    if (at == header.npos) return {};
    const std::string_view rest = header.substr(at + start.size());
    return rest.substr(0, rest.find(end));
  };
  out.type = between("'descr': '", '\'');
  const std::size_t element = out.type == "<f4" ? sizeof(float) : out.type == "|u1" ? 1 : 0;
  if (element == 0 || between("'fortran_order': ", ',') != "False") return false;
  out.shape.clear();
  std::size_t left = (text.size() - begin) / element;
  for (std::string_view rest = between("'shape': (", ')'); !rest.empty();) {
    std::size_t extent = 0;
    const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), extent);
    if (error != std::errc{} || extent > left) return false;
    if (extent != 0) left /= extent;
    out.shape.push_back(extent);
    rest.remove_prefix(
        std::min(rest.find_first_not_of(", ", static_cast<std::size_t>(end - rest.data())), rest.size()));
  }
  out.data = file.subspan(begin);
  return out.data.size() == out.size() * element;
}

/// The elements of one of floats.
inline std::vector<float> floats_of(const ArrayView& array) {
  std::vector<float> floats(array.size());
  std::memcpy(floats.data(), array.data.data(), array.data.size());
  return floats;
}

/// The .npy file of an array: its type as in ArrayView, its shape as Python writes it, "(2, 3)", and its elements.
inline wirecall::Extension npy_of(std::string_view type, std::string_view shape, std::span<const std::byte> data) {
  constexpr std::size_t kHead = 128;  // of all before the elements: a multiple of 64
  std::string head{"\x93NUMPY\x01\x00\x76\x00", 10};
  static_assert(kHead - 10 == 0x76);
  head.append("{'descr': '").append(type).append("', 'fortran_order': False, 'shape': ").append(shape).append(", }");
  head.resize(kHead - 1, ' ');
  head.push_back('\n');

  wirecall::Extension npy{.type = wirecall::kNpyExtension, .data = std::vector<std::byte>(kHead + data.size())};
  std::memcpy(npy.data.data(), head.data(), kHead);
  std::memcpy(npy.data.data() + kHead, data.data(), data.size());
  return npy;
}
inline wirecall::Extension npy_of(std::span<const float> vector) {
  return npy_of("<f4", "(" + std::to_string(vector.size()) + ",)", std::as_bytes(vector));
}

}  // namespace gpu

template <>
struct wirecall::Adapt<gpu::ArrayView> {
  static constexpr std::string_view name = "an array (.npy) of float32 or uint8, row by row";
  static bool decode(Reader& reader, gpu::ArrayView& out) {
    const char* const mark = reader.mark();
    std::int8_t type = 0;
    std::span<const std::byte> file;
    if (reader.read_extension(type, file) && type == kNpyExtension && gpu::read_npy(file, out)) return true;
    reader.rewind(mark);
    return reader.fail(name);
  }
};
