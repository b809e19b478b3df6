// Packing along a LayoutTree. What does not fit is put into words once, at the end.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <string>
#include <utility>

#include "codec/decode_failure.hpp"
#include "codec/layout_tree.hpp"
#include "wirecall/layout_packer.hpp"
#include "wirecall/packed.hpp"

namespace wirecall {
namespace codec {
namespace {

using detail::PackedOutput;
using Kind = LayoutNode::Kind;

class LayoutWriter {
 public:
  LayoutWriter(Buffer& out, const detail::Layout& layout, const Value& value)
      : buffer_(&out), out_(out, layout), attempts_left_(kAttemptsMin + kAttemptsPerValue * steps_of(value)) {}

  bool pack(const LayoutNode& node, const Value& value) {
    ++steps_;
    if (++depth_ > kNodesDeepMax) return fail(node, &value);
    if (has_nothing(node)) out_.number(std::uint8_t{0});
    if (!pack_content(node, value)) return false;
    --depth_;
    return true;
  }

  /// What has been packed is whole. Throws what the bytes cannot hold.
  void finish() { out_.finish(); }
  /// Only after `pack` has failed.
  [[nodiscard]] DecodeFailure take_failure() {
    return {words_for(*failed_), got_ == nullptr ? "nothing" : shown(*got_), std::move(path_), {}};
  }

 private:
  // What variants try in vain, one within another, would take exponential time.
  static constexpr std::uint64_t kAttemptsMin = 65'536;
  static constexpr std::uint64_t kAttemptsPerValue = 64;  // as many as a variant has alternatives

  // To copy so many bytes, or to look at so many members, is as much as a value.
  static constexpr std::uint64_t kBytesOfStep = 256;
  static constexpr std::uint64_t kMembersOfStep = 16;

  static std::uint64_t steps_of(const Value& value) {
    std::uint64_t count = 1;
    if (value.is_string()) count += value.as_string().size() / kBytesOfStep;
    if (value.kind() == ValueKind::bytes) count += value.as_bytes().size() / kBytesOfStep;
    if (value.is_array())
      for (const Value& element : value.as_array()) count += steps_of(element);
    if (value.is_object())
      for (const auto& [name, member] : value.as_object()) count += steps_of(member) + name.size() / kBytesOfStep;
    return count;
  }

  // What is wrong is put into words once, since an alternative may fail a thousand times. A null `got`: nothing is
  // there.
  bool fail(const LayoutNode& node, const Value* got) {
    failed_ = &node;
    got_ = got;
    path_.clear();
    return false;
  }
  bool fail_key(const LayoutNode& node, const std::string& name) {
    key_ = name;
    return fail(node, &key_);
  }
  template <class Step>
  bool failed_at(const Step& step) {
    path_.emplace_back(step);
    return false;
  }

  bool pack_content(const LayoutNode& node, const Value& value) {
    switch (node.kind) {
      case Kind::any: {
        const std::size_t before = buffer_->size();
        out_.adapted(value);
        steps_ += (buffer_->size() - before) / kBytesOfStep;
        return true;
      }
      case Kind::null: return value.is_null() || fail(node, &value);
      case Kind::boolean:
        if (!value.is_bool()) return fail(node, &value);
        out_.number(static_cast<std::uint8_t>(value.as_bool()));
        return true;
      case Kind::integer:
      case Kind::number:
      case Kind::duration: return number(node, value) || fail(node, &value);
      case Kind::string:
        if (!value.is_string()) return fail(node, &value);
        steps_ += value.as_string().size() / kBytesOfStep;
        out_.string(value.as_string());
        return true;
      case Kind::bytes:
      case Kind::sized_bytes: return bytes(node, value) || fail(node, &value);
      case Kind::enumeration: return (value.is_string() && enumerator(node, value.as_string())) || fail(node, &value);
      case Kind::optional:
        out_.number(static_cast<std::uint8_t>(value.is_null() ? 0 : 1));
        return value.is_null() || pack(*node.parts.front(), value);
      case Kind::variant: return alternative(node, value);
      case Kind::time: return time(node, value) || fail(node, &value);
      case Kind::array:
      case Kind::sequence:
      case Kind::tuple: return elements(node, value);
      case Kind::map: return map(node, value);
      case Kind::structure: return members(node, value);
    }
    std::unreachable();
  }

  template <class T>
  static bool number_of(const Value& value, T& out) {
    if (!value.is_number()) return false;
    try {
      if constexpr (std::is_floating_point_v<T>) {
        const double number = value.as_double();
        out = static_cast<T>(number);
        return std::isfinite(out) == std::isfinite(number);
      } else if constexpr (std::is_signed_v<T>) {
        const std::int64_t number = value.as_int();
        out = static_cast<T>(number);
        return out == number;
      } else {
        const std::uint64_t number = value.as_uint();
        out = static_cast<T>(number);
        return out == number;
      }
    } catch (const Error&) {
      return false;
    }
  }
  bool number(const LayoutNode& node, const Value& value) {
    return with_number(node, [&]<class T>(T number) {
      if (!number_of(value, number)) return false;
      out_.number(number);
      return true;
    });
  }

  bool bytes(const LayoutNode& node, const Value& value) {
    Value::Bytes bytes;
    try {
      bytes = value.as_bytes();
    } catch (const Error&) {
      return false;
    }
    steps_ += bytes.size() / kBytesOfStep;
    if (node.kind == Kind::bytes) {
      out_.count(bytes.size());
    } else if (bytes.size() != node.length) {
      return false;
    }
    if (!bytes.empty()) out_.copy(bytes.data(), bytes.size());
    return true;
  }

  bool enumerator(const LayoutNode& node, const std::string& name) {
    const auto found = node.enumerators.find(name);
    if (found == node.enumerators.end()) return false;
    with_number(node, [&]<class T>(T) { out_.number(static_cast<T>(found->second)); });
    return true;
  }

  bool alternative(const LayoutNode& node, const Value& value) {
    const std::size_t begin = buffer_->size();
    const std::size_t depth = depth_;
    for (std::size_t i = 0; i < node.parts.size() && attempts_left_ != 0; ++i) {
      const std::uint64_t steps = steps_;
      out_.number(static_cast<std::uint8_t>(i));
      if (pack(*node.parts[i], value)) return true;
      buffer_->truncate(begin);
      depth_ = depth;
      attempts_left_ -= std::min(attempts_left_, steps_ - steps);
    }
    return fail(node, &value);
  }

  // A string, or a timestamp of MessagePack.
  bool time(const LayoutNode& node, const Value& value) {
    if (!value.is_string() && !value.is_extension()) return false;
    const std::vector<std::byte> encoded = to_msgpack(value);
    steps_ += encoded.size() / kBytesOfStep;
    const std::unique_ptr<Reader> reader = msgpack_codec().reader();
    reader->reset({reinterpret_cast<const char*>(encoded.data()), encoded.size()});
    std::int64_t ticks = 0;
    std::int32_t nanoseconds = 0;
    if (!detail::decode_time(*reader, ticks, nanoseconds)) return false;
    if (node.denominator == 1) {
      ticks = ticks / node.numerator - (ticks % node.numerator < 0 ? 1 : 0);
    } else if (__builtin_mul_overflow(ticks, node.denominator, &ticks) ||
               __builtin_add_overflow(ticks, nanoseconds / (1'000'000'000 / node.denominator), &ticks)) {
      return false;
    }
    return number(node, ticks);
  }

  bool elements(const LayoutNode& node, const Value& value) {
    if (!value.is_array()) return fail(node, &value);
    const Value::Array& elements = value.as_array();
    if (node.kind == Kind::sequence) {
      out_.count(elements.size());
    } else if (elements.size() != (node.kind == Kind::array ? node.length : node.parts.size())) {
      return fail(node, &value);
    }
    for (std::size_t i = 0; i < elements.size(); ++i)
      if (!pack(*node.parts[node.kind == Kind::tuple ? i : 0], elements[i])) return failed_at(i);
    return true;
  }

  bool key(const LayoutNode& node, const std::string& name) {
    if (node.kind == Kind::string) return out_.string(name), true;
    if (node.kind == Kind::enumeration) return enumerator(node, name) || fail_key(node, name);
    return with_number(node, [&]<class T>(T number) {
      if constexpr (std::is_integral_v<T>) {
        const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
        if (error == std::errc{} && end == name.data() + name.size()) return out_.number(number), true;
      }
      return fail_key(node, name);
    });
  }

  bool map(const LayoutNode& node, const Value& value) {
    if (!value.is_object()) return fail(node, &value);
    out_.count(value.size());
    for (const auto& [name, element] : value.as_object()) {
      steps_ += name.size() / kBytesOfStep;
      if (!key(*node.parts[0], name) || !pack(*node.parts[1], element)) return failed_at(name);
    }
    return true;
  }

  // Others that it has are passed over, as where a struct is decoded. What is missing is looked for first: most
  // alternatives of a variant that do not fit are known by that.
  bool members(const LayoutNode& node, const Value& value) {
    if (!value.is_object()) return fail(node, &value);
    std::vector<const Value*> members(node.parts.size());
    for (std::size_t i = 0; i < members.size(); ++i) {
      members[i] = value.find(node.names[i]);
      steps_ += value.size() / kMembersOfStep;
      if (members[i] != nullptr || node.parts[i]->kind == Kind::optional) continue;
      fail(*node.parts[i], nullptr);
      return failed_at(node.names[i]);
    }
    for (std::size_t i = 0; i < members.size(); ++i) {
      if (members[i] == nullptr) {
        out_.number(std::uint8_t{0});
      } else if (!pack(*node.parts[i], *members[i])) {
        return failed_at(node.names[i]);
      }
    }
    return true;
  }

  Buffer* buffer_;
  PackedOutput out_;
  std::size_t depth_ = 0;
  std::uint64_t steps_ = 0;
  std::uint64_t attempts_left_;
  const LayoutNode* failed_ = nullptr;
  const Value* got_ = nullptr;
  Value key_;
  std::vector<DecodeFailure::Step> path_;
};

}  // namespace
}  // namespace codec

std::expected<std::vector<std::byte>, Error> LayoutPacker::pack(const Value& value) const {
  Buffer out;
  try {
    codec::LayoutWriter writer{out, tree_->layout(), value};
    if (!writer.pack(tree_->root(), value)) return std::unexpected(codec::decode_error(writer.take_failure()));
    writer.finish();
  } catch (const LocalError& error) {
    return std::unexpected(Error{ErrorCode::invalid_params, error.message(), error.data()});
  }
  const auto* const data = reinterpret_cast<const std::byte*>(out.data());
  return std::vector<std::byte>{data, data + out.size()};
}

}  // namespace wirecall
