// What JetStream says, and is told: members of its answers, times, and where a message that was given is acknowledged.
// Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "wirecall/value.hpp"

namespace wirecall::jetstream_store {

/// That many milliseconds as JetStream wants them.
[[nodiscard]] std::string nanoseconds_of(std::uint64_t ms);
/// A name of the text, of 32 hexadecimal digits, where it may have other characters: the same at each node, and of no
/// other text.
[[nodiscard]] std::string token_of(std::string_view text);

/// How much a message holds, as a word of its subject tells it: at most a quarter more than it does.
[[nodiscard]] std::uint64_t size_class(std::size_t bytes) noexcept;
/// 0 for what is none.
[[nodiscard]] std::uint64_t to_number(std::string_view digits) noexcept;

/// The member of that name, and a member of it; null where there is none.
[[nodiscard]] const Value* find(const Value& value, std::string_view name) noexcept;
[[nodiscard]] const Value* find(const Value& value, std::string_view name, std::string_view member) noexcept;
/// 0 and an empty text for another kind, or null.
[[nodiscard]] std::uint64_t number(const Value* value);
[[nodiscard]] std::string text(const Value* value);

/// Whether the text is empty or one JSON value, and whether that is one of params: an array or object.
[[nodiscard]] bool is_json(std::string_view text);
[[nodiscard]] bool are_params(std::string_view text);

/// A message that a stream has been asked for.
struct StoredMessage {
  std::string subject;
  std::string data;
  std::uint64_t seq = 0;
  std::int64_t at_ms = 0;
};
/// As $JS.API.STREAM.MSG.GET answers.
[[nodiscard]] StoredMessage stored_message(const Value& answer);

/// What is said of a message that was given by the subject where it is acknowledged.
struct Delivery {
  std::uint64_t seq = 0;
  std::uint32_t deliveries = 0;  ///< with this one
  std::int64_t at_ms = 0;        ///< when it was kept
};
[[nodiscard]] Delivery delivery_of(std::string_view reply) noexcept;

}  // namespace wirecall::jetstream_store
