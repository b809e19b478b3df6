// Template bodies of unpacking. Every byte is checked: what is packed may come from anyone who knows the layout.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>

#include "wirecall/codec.hpp"
#include "wirecall/detail/decode.hpp"
#include "wirecall/detail/encode.hpp"
#include "wirecall/detail/pack.hpp"
#include "wirecall/detail/packed_layout.hpp"
#include "wirecall/detail/type_info.hpp"
#include "wirecall/error.hpp"
#include "wirecall/limits.hpp"

namespace wirecall::detail {

class PackedInput {
 public:
  PackedInput(std::span<const std::byte> bytes, std::uint32_t depth_max) noexcept
      : at_(reinterpret_cast<const char*>(bytes.data())),
        end_(at_ + bytes.size()),
        depth_left_(depth_max < kDepthMax ? depth_max : kDepthMax) {}

  /// Reads the layout's hash.
  [[nodiscard]] bool begin(const Layout& layout) {
    std::uint64_t hash = 0;
    if (left() < sizeof hash) [[unlikely]]
      return begin_otherwise(layout);
    std::memcpy(&hash, at_, sizeof hash);
    if (in_wire_order(hash) != layout.hash()) [[unlikely]]
      return begin_otherwise(layout);
    at_ += sizeof hash;
    return true;
  }
  /// Whether all bytes have been read.
  [[nodiscard]] bool finish() { return at_ == end_ || fail_further(); }
  /// Only after a failure.
  [[nodiscard]] DecodeFailure take_failure() { return std::move(*failure_); }

  [[nodiscard]] std::size_t left() const noexcept { return static_cast<std::size_t>(end_ - at_); }

  template <class T>
  bool number(T& out, const TypeInfo& type) {
    if (left() < sizeof out) [[unlikely]]
      return fail_short(type);
    std::memcpy(&out, at_, sizeof out);
    out = in_wire_order(out);
    at_ += sizeof out;
    return true;
  }
  /// A number of elements, each of which takes a byte at least.
  bool count(std::size_t& out) {
    if (at_ != end_ && static_cast<unsigned char>(*at_) < 0x80) [[likely]] {
      out = static_cast<unsigned char>(*at_++);
      return out <= left() || fail_count();
    }
    return long_count(out);
  }
  /// A byte below `values`.
  bool byte(unsigned values, unsigned& out, const TypeInfo& type) {
    if (at_ == end_) [[unlikely]]
      return fail_short(type);
    out = static_cast<unsigned char>(*at_);
    if (out >= values) [[unlikely]]
      return fail_byte(type);
    ++at_;
    return true;
  }
  /// The byte of a value that has none.
  bool nothing(const TypeInfo& type) {
    unsigned zero = 0;
    return byte(1, zero, type);
  }
  /// `bytes` are no more than there are.
  void copy(void* to, std::size_t bytes) noexcept {
    std::memcpy(to, at_, bytes);
    at_ += bytes;
  }
  bool string(std::string_view& utf8);
  bool bytes(std::span<const std::byte>& out);
  template <class T>
  bool adapted(T& out) {
    static_assert(
        !requires { Adapt<T>::borrows; },
        "wirecall: a packed value cannot be borrowed as JSON text; use wirecall::Value");
    Reader* const reader = begin_adapted();
    if (reader == nullptr) return false;
    static_assert(requires { Adapt<T>::decode(*reader, out); }, "wirecall: Adapt<T> has no decode");
    return Adapt<T>::decode(*reader, out) || take_failure(*reader);
  }
  /// How many members the struct has in the layout of the bytes, in which it may be a shorter one.
  [[nodiscard]] std::size_t members_of(const TypeInfo& type, std::size_t count) const noexcept {
    return older_ != nullptr && older_->type == &type ? count - older_->lacking : count;
  }
  bool enter() { return depth_left_-- != 0 || fail_depth(); }
  void leave() noexcept { ++depth_left_; }

  // All return false.
  bool fail_short(const TypeInfo& type);
  bool fail_count();
  bool fail_byte(const TypeInfo& type);
  bool fail_depth();
  bool fail_enumerator(const TypeInfo& type, std::int64_t value);
  bool fail_repeated();
  bool fail_limits(const MemberInfo& member, EncodeFunction encode, const void* value);
  bool failed_at(std::string_view member);
  bool failed_at(std::size_t position);
  bool fail(std::string expected, std::string got);

 private:
  bool begin_otherwise(const Layout& layout);
  bool fail_further();
  bool long_count(std::size_t& out);
  Reader* begin_adapted();
  bool take_failure(Reader& reader);

  const char* at_;
  const char* end_;
  std::uint32_t depth_left_;
  const ShorterStruct* older_ = nullptr;
  std::unique_ptr<DecodeFailure> failure_;
  std::unique_ptr<Reader> reader_;
};

/// As decode_error, of what PackedInput has failed with.
[[nodiscard]] Error packed_error(const DecodeFailure& failure);
/// The error of a callee that has another layout, with the caller's beside its own; nothing for any other error.
[[nodiscard]] std::optional<Error> with_own_layout(const Error& error, std::string_view layout);

// ---- templates ----

template <class T>
bool unpack(PackedInput& in, T& out);

template <class T, std::size_t I>
bool unpack_member(PackedInput& in, auto& member, std::size_t count) {
  using M = std::remove_cvref_t<decltype(member)>;
  constexpr const MemberInfo& info = kMemberInfos<T>[I];
  if constexpr (I >= kMemberCount<T> - optional_at_end(kMemberInfos<T>)) {
    if (I >= count) {
      if constexpr (kIsOptional<M>) member.reset();
      return true;
    }
  }
  if (!unpack(in, member)) return in.failed_at(info.name);
  if constexpr (limit_function<T, I, M>() != nullptr) {
    if (!within_limits<M>(&member, *info.about)) {
      in.fail_limits(info, &encode_erased<M>, &member);
      return in.failed_at(info.name);
    }
  }
  return true;
}

template <class T>
struct UnpackMembers {
  PackedInput* in;
  std::size_t count;

  template <class... M>
  bool operator()(M&... member) const {
    return each(std::index_sequence_for<M...>{}, member...);
  }

 private:
  template <std::size_t... I, class... M>
  bool each(std::index_sequence<I...>, M&... member) const {
    return (unpack_member<T, I>(*in, member, count) && ...);
  }
};

template <class T>
bool unpack_aggregate(PackedInput& in, T& out) {
  const TypeInfo& type = TypeInfoOf<T>::value;
  std::size_t count = kMemberCount<T>;
  if constexpr (optional_at_end(kMemberInfos<T>) != 0) count = in.members_of(type, count);
  if (!in.enter()) return false;
  if (count == 0 && !in.nothing(type)) return false;
  if (!visit_members(out, UnpackMembers<T>{&in, count})) return false;
  in.leave();
  return true;
}

template <class T, std::size_t... I>
bool unpack_tuple(PackedInput& in, T& out, std::index_sequence<I...>) {
  if constexpr (sizeof...(I) == 0) return in.nothing(TypeInfoOf<T>::value);
  return ((unpack(in, std::get<I>(out)) || in.failed_at(I)) && ...);
}

template <class V, std::size_t... I>
bool unpack_variant(PackedInput& in, V& out, std::index_sequence<I...>) {
  unsigned index = 0;
  if (!in.byte(sizeof...(I), index, TypeInfoOf<V>::value)) return false;
  bool good = false;
  static_cast<void>(((index == I ? (good = unpack(in, out.template emplace<I>()), true) : false) || ...));
  return good;
}

template <class T>
bool unpack_array(PackedInput& in, T& out) {
  using Element = std::remove_reference_t<decltype(out[0])>;
  constexpr std::size_t kLength = kArrayLength<T>;
  if constexpr (kLength == 0) {
    return in.nothing(TypeInfoOf<T>::value);
  } else if constexpr (kIsCopied<Element>) {
    if (in.left() < kLength * sizeof(Element)) return in.fail_short(TypeInfoOf<T>::value);
    in.copy(std::data(out), kLength * sizeof(Element));
    return true;
  } else {
    for (std::size_t position = 0; position < kLength; ++position)
      if (!unpack(in, out[position])) return in.failed_at(position);
    return true;
  }
}

/// Containers whose elements can be copied into place.
template <class T>
inline constexpr bool kIsContiguous = requires(T& range) {
  std::data(range);
  range.resize(1);
};

template <class T>
bool unpack_sequence(PackedInput& in, T& out) {
  using Element = typename T::value_type;
  constexpr bool kAppends = requires(Element&& element) { out.push_back(std::move(element)); };
  static_assert(
      kAppends || requires(Element&& element) { out.insert(std::move(element)); },
      "wirecall: a view has no room of its own to decode into; use std::vector");
  std::size_t count = 0;
  if (!in.count(count)) return false;
  if constexpr (kIsCopied<Element> && kIsContiguous<T>) {
    if (count > in.left() / sizeof(Element)) return in.fail_count();
    out.resize(count);
    if (count != 0) in.copy(std::data(out), count * sizeof(Element));
    return true;
  } else {
    if constexpr (requires { out.clear(); }) {
      out.clear();  // and keeps its memory
    } else {
      out = T{};
    }
    if constexpr (requires { out.reserve(1); } && kAppends) {
      constexpr std::size_t kCountMax = kReservedBytesMax / sizeof(Element);
      out.reserve(count < kCountMax ? count : kCountMax);
    }
    if (!in.enter()) return false;
    for (std::size_t position = 0; position < count; ++position) {
      if constexpr (requires { out.emplace_back(); } && !std::is_same_v<Element, bool>) {
        if (!unpack(in, out.emplace_back())) return in.failed_at(position);
      } else {
        Element element{};
        if (!unpack(in, element)) return in.failed_at(position);
        if constexpr (kAppends) {
          out.push_back(std::move(element));
        } else {
          out.insert(std::move(element));
        }
      }
    }
    in.leave();
    return true;
  }
}

template <class T>
bool unpack_map(PackedInput& in, T& out) {
  out.clear();
  std::size_t count = 0;
  if (!in.count(count) || !in.enter()) return false;
  for (std::size_t position = 0; position < count; ++position) {
    typename T::key_type key{};
    if (!unpack(in, key)) return in.failed_at(position);
    typename T::mapped_type* value = nullptr;
    if constexpr (requires { out.try_emplace(std::move(key)); }) {
      const auto [entry, is_new] = out.try_emplace(std::move(key));
      if (!is_new) {
        in.fail_repeated();
        return in.failed_at(position);
      }
      value = &entry->second;
    } else {
      value = &out.emplace(std::move(key), typename T::mapped_type{})->second;
    }
    if (!unpack(in, *value)) return in.failed_at(position);
  }
  in.leave();
  return true;
}

template <class T>
bool unpack_bytes(PackedInput& in, T& out) {
  if constexpr (kIsArray<T>) {
    if constexpr (kArrayLength<T> == 0) return in.nothing(TypeInfoOf<T>::value);
    if (in.left() < out.size()) return in.fail_short(TypeInfoOf<T>::value);
    in.copy(out.data(), out.size());
    return true;
  } else {
    std::span<const std::byte> bytes;
    if (!in.bytes(bytes)) return false;
    if constexpr (std::is_same_v<T, std::span<const std::byte>>) {
      out = bytes;
    } else {
      static_assert(
          requires { out.assign(bytes.begin(), bytes.end()); },
          "wirecall: this view of bytes cannot be decoded; use std::span<const std::byte> or a vector");
      out.assign(bytes.begin(), bytes.end());
    }
    return true;
  }
}

template <class T>
bool unpack(PackedInput& in, T& out) {
  constexpr Kind kind = kKind<T>;
  if constexpr (kind == Kind::adapted) {
    return in.adapted(out);
  } else if constexpr (kind == Kind::null) {
    return in.nothing(TypeInfoOf<T>::value);
  } else if constexpr (kind == Kind::boolean) {
    unsigned value = 0;
    if (!in.byte(2, value, TypeInfoOf<T>::value)) return false;
    out = value != 0;
    return true;
  } else if constexpr (kind == Kind::integer || kind == Kind::number) {
    return in.number(out, TypeInfoOf<T>::value);
  } else if constexpr (kind == Kind::string) {
    static_assert(!std::is_pointer_v<T>, "wirecall: a pointer to characters can be encoded only; decode std::string");
    std::string_view text;
    if (!in.string(text)) return false;
    out = text;
    return true;
  } else if constexpr (kind == Kind::bytes) {
    return unpack_bytes(in, out);
  } else if constexpr (kind == Kind::enumeration) {
    EnumNumber<T> value{};
    if (!in.number(value, TypeInfoOf<T>::value)) return false;
    if (!is_enumerator(kEnumEntries<T>, static_cast<std::int64_t>(value)))
      return in.fail_enumerator(TypeInfoOf<T>::value, static_cast<std::int64_t>(value));
    out = static_cast<T>(value);
    return true;
  } else if constexpr (kind == Kind::optional) {
    unsigned present = 0;
    if (!in.byte(2, present, TypeInfoOf<T>::value)) return false;
    if (present == 0) {
      out.reset();
      return true;
    }
    if constexpr (requires { out.emplace(); }) {
      return unpack(in, out.emplace());
    } else {
      out = T(new typename T::element_type());
      return unpack(in, *out);
    }
  } else if constexpr (kind == Kind::variant) {
    return unpack_variant(in, out, std::make_index_sequence<std::variant_size_v<T>>{});
  } else if constexpr (kind == Kind::duration) {
    typename T::rep count{};
    if (!in.number(count, TypeInfoOf<T>::value)) return false;
    out = T{count};
    return true;
  } else if constexpr (kind == Kind::time) {
    check_time_unit<typename T::duration>();
    typename T::rep ticks{};
    if (!in.number(ticks, TypeInfoOf<T>::value)) return false;
    out = T{typename T::duration{ticks}};
    return true;
  } else if constexpr (kind == Kind::array) {
    return unpack_array(in, out);
  } else if constexpr (kind == Kind::tuple) {
    return unpack_tuple(in, out, std::make_index_sequence<std::tuple_size_v<T>>{});
  } else if constexpr (kind == Kind::map) {
    return unpack_map(in, out);
  } else if constexpr (kind == Kind::sequence) {
    return unpack_sequence(in, out);
  } else if constexpr (kind == Kind::aggregate) {
    return unpack_aggregate(in, out);
  } else {
    refuse_unknown<T>();
    return false;
  }
}

}  // namespace wirecall::detail
