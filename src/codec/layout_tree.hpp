// LayoutTree: a layout's text (docs/packed.md, "Layouts") as a tree of its types. Immutable once it is made.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "wirecall/detail/packed_layout.hpp"

namespace wirecall::codec {

struct LayoutNode {
  enum class Kind : std::uint8_t {
    any,
    null,
    boolean,
    integer,
    number,
    string,
    bytes,
    sized_bytes,
    enumeration,
    optional,
    variant,
    duration,
    time,
    array,
    sequence,
    tuple,
    map,
    structure,
  };

  Kind kind = Kind::null;
  // Of integers and numbers, and what enums, durations and points in time count in.
  bool is_signed = false;
  bool is_floating = false;
  std::uint8_t size = 0;  ///< in bytes
  // Of durations and points in time: a tick in seconds.
  std::int64_t numerator = 1;
  std::int64_t denominator = 1;
  std::size_t length = 0;  ///< of sized bytes and arrays
  std::map<std::string, std::int64_t, std::less<>> enumerators = {};
  std::map<std::int64_t, std::string_view> enumerator_names = {};  ///< of those with one number the first
  std::vector<std::string> names = {};                             ///< of a struct's members
  std::vector<const LayoutNode*> parts = {};  ///< elements, alternatives, members; of a map the key and the value
};

class LayoutTree {
 public:
  static constexpr std::size_t kDepthMax = 128;
  static constexpr std::size_t kNodesMax = 65'536;

  /// Throws std::invalid_argument for a text that is no layout.
  explicit LayoutTree(std::string_view text);
  LayoutTree(LayoutTree&&) = delete;

  [[nodiscard]] const detail::Layout& layout() const noexcept { return layout_; }
  [[nodiscard]] const LayoutNode& root() const noexcept { return *root_; }

 private:
  friend class LayoutParser;

  detail::Layout layout_;
  std::deque<LayoutNode> nodes_;  // which keep their places
  const LayoutNode* root_;
};

/// The most types that a value may be within: those whose values take no byte and no level of depth, as tuples of one
/// element, are counted too.
inline constexpr std::size_t kNodesDeepMax = 1024;

/// Calls `use` with a zero of the type that the node's numbers have.
template <class Use>
auto with_number(const LayoutNode& node, const Use& use) {
  if (node.is_floating) return node.size == 4 ? use(float{}) : use(double{});
  switch (node.size) {
    case 1: return node.is_signed ? use(std::int8_t{}) : use(std::uint8_t{});
    case 2: return node.is_signed ? use(std::int16_t{}) : use(std::uint16_t{});
    case 4: return node.is_signed ? use(std::int32_t{}) : use(std::uint32_t{});
    default: return node.is_signed ? use(std::int64_t{}) : use(std::uint64_t{});
  }
}

/// Whether its values are one byte, 0, since nothing else is in them.
[[nodiscard]] bool has_nothing(const LayoutNode& node) noexcept;
/// What a value of it is, for an error: "integer from 0 to 255", "array of length 3".
[[nodiscard]] std::string words_for(const LayoutNode& node);

}  // namespace wirecall::codec
