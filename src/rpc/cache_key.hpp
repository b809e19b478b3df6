// CacheKeyWriter: makes the key under which the result of a call is kept. The key is bytes: equal for equal arguments,
// whatever order, white space, encoding or spelling of numbers they came in. One thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "wirecall/bytes.hpp"
#include "wirecall/codec.hpp"
#include "wirecall/detail/cache_key.hpp"
#include "wirecall/value.hpp"

namespace wirecall::rpc {

/// Whether values of the type may be equal though they are encoded differently: those of maps and of any type.
[[nodiscard]] bool is_ambiguous(const TypeInfo& type);
/// The signature's parameters as they are, but taking any value, for CacheKeyWriter::write_untyped.
[[nodiscard]] std::vector<detail::ArgumentType> untyped(std::span<const detail::ArgumentType> arguments);

/// Whether a double that is an integer is the same as that integer: it is `alike` where the function is given one of
/// the two in any case.
enum class Numbers : std::uint8_t { as_decoded, alike };

/// Appends the value: members in order of their names. Different values differ, but for numbers that are `alike`.
void append_canonical(Buffer& out, const Value& value, Numbers numbers);

class CacheKeyWriter {
 public:
  CacheKeyWriter();

  /// The key of the call's arguments; empty where they have none, which no key of others is. Valid until the next.
  /// `sorted`: some of them are ambiguous.
  [[nodiscard]] std::string_view write(Call& call, detail::WriteCacheKey write, bool sorted);
  /// The same of a method whose parameters are known by `untyped` alone.
  [[nodiscard]] std::string_view write_untyped(Call& call, const Method& untyped);

 private:
  Buffer encoded_;
  Buffer canonical_;
  std::unique_ptr<Writer> writer_;
  std::unique_ptr<Reader> reader_;
};

}  // namespace wirecall::rpc
