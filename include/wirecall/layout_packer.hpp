// LayoutPacker: packs and unpacks values by a layout that is known as text alone, as rpc.discover tells it. The format
// is that of packed.hpp (docs/packed.md), which is many times faster where the C++ type is known.
//
//     const LayoutPacker packer{"([f64])"};
//     auto bytes = packer.pack(Value::array({Value::array({1.0, 2.0})}));
//
// A Value is packed, and comes back, as the type's JSON form has it: an enum by the name of its enumerator, a struct as
// an object, whose members that are optional and empty are left out.
// Thread: any; one may be used by several at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "wirecall/error.hpp"
#include "wirecall/limits.hpp"
#include "wirecall/value.hpp"

namespace wirecall {
namespace codec {
class LayoutTree;
}

class LayoutPacker {
 public:
  /// Throws std::invalid_argument, with what is wrong, for a text that is no layout, that nests 128 levels deep, or
  /// that has more than 65,536 types.
  explicit LayoutPacker(std::string_view layout);
  LayoutPacker(LayoutPacker&&) noexcept;
  LayoutPacker& operator=(LayoutPacker&&) noexcept;
  ~LayoutPacker();

  [[nodiscard]] std::string_view text() const noexcept;
  /// Of a tuple, how many elements it has; else nothing.
  [[nodiscard]] std::optional<std::size_t> tuple_size() const noexcept;
  /// Of a tuple, whether the element at that position, below `tuple_size`, may be empty.
  [[nodiscard]] bool is_optional(std::size_t position) const noexcept;

  /// The error is -32602 with {"loc", "expected", "got"}, as of a value that does not decode. No value is within more
  /// than 1024 types, of which a struct, an optional and a tuple are one each.
  [[nodiscard]] std::expected<std::vector<std::byte>, Error> pack(const Value& value) const;
  /// The error is -32602: {"layout"} where the bytes are of another layout, else as of `pack`. What a value
  /// repeats that does not stand in its bytes (names, structs and tuples within each other) is bounded: by 64 MiB and
  /// 64 for each byte.
  [[nodiscard]] std::expected<Value, Error> unpack(std::span<const std::byte> bytes,
                                                   std::uint32_t depth_max = Limits{}.depth) const;

 private:
  std::unique_ptr<const codec::LayoutTree> tree_;
};

}  // namespace wirecall
